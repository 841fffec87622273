package system

import (
	"net/http"
	"runtime"
	"runtime/debug"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
)

// Sample is what the server did in a span of time, per second.
type Sample struct {
	At          time.Time `json:"at" doc:"When the span ended"`
	DHCPReplies float64   `json:"dhcpReplies" doc:"Answers of DHCP per second"`
	DHCPDrops   float64   `json:"dhcpDrops" doc:"DHCP packets per second that stayed unanswered"`
	TFTPBytes   float64   `json:"tftpBytes" doc:"Bytes per second by TFTP"`
	HTTPBytes   float64   `json:"httpBytes" doc:"Bytes of files per second from the boot listener"`
	Boots       float64   `json:"boots" doc:"Boots that began, per second"`
}

// Stats are samples of equal spans, oldest first. They begin at zero with each start of the server.
type Stats struct {
	StepSeconds int      `json:"stepSeconds" doc:"Length of the spans"`
	Samples     []Sample `json:"samples" doc:"Of the last hour at most"`
}

// Part is a Go module in this program.
type Part struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// About is what the server is made of.
type About struct {
	Version   string    `json:"version"`
	Go        string    `json:"go" doc:"Version of Go that it was built with"`
	Platform  string    `json:"platform" doc:"Operating system and architecture"`
	StartedAt time.Time `json:"startedAt"`
	Parts     []Part    `json:"parts" doc:"The Go modules in it; their licences are listed by the web UI"`
}

// addStats registers how busy the server is, and what it is made of.
func (s *Server) addStats() {
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/stats", ID: "get-stats", Scope: rest.OfNobody, Tag: "system",
		Summary: "Show how busy the server was in the last hour",
		About:   "Samples are kept in memory: /metrics is for keeping them longer.",
	},
		func(_ *rest.Request, in *struct {
			Step int `query:"step" doc:"Length of the spans in seconds" enum:"5,60" default:"60"`
		},
		) (*rest.One[Stats], error) {
			if s.cfg.Samples == nil {
				return nil, inventory.Errorf(inventory.Unavailable, "this server takes no samples")
			}
			step := time.Duration(in.Step) * time.Second
			out := Stats{StepSeconds: in.Step, Samples: s.cfg.Samples(step)}
			if out.Samples == nil {
				out.Samples = []Sample{}
			}
			return &rest.One[Stats]{Body: out}, nil
		})
	var startedAt time.Time
	if s.rest.Now != nil { // nobody asks a server that only describes itself
		startedAt = s.rest.Now().UTC().Truncate(time.Second)
	}
	rest.Register(s.rest, rest.Operation{Method: http.MethodGet, Path: "/about", ID: "about", Needs: rest.Anybody, Tag: "system", Summary: "Show what the server is made of"},
		func(*rest.Request, *struct{}) (*rest.One[About], error) {
			return &rest.One[About]{Body: About{
				Version: s.cfg.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, StartedAt: startedAt, Parts: builtIn(),
			}}, nil
		})
}

// builtIn are the modules in this program, as its build noted them.
func builtIn() []Part {
	parts := []Part{}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return parts
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		parts = append(parts, Part{Name: m.Path, Version: m.Version})
	}
	return parts
}
