package configs

import (
	"cmp"
	"net/http"
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

type draftInput struct {
	rest.HostRef
	Body inventory.Profile
}

type digestInput struct {
	Digest string `path:"digest" doc:"sha256:<hex>, or the hex digits alone" maxLength:"80"`
}

type hostRenderingsInput struct {
	rest.HostRef
	Limit int `query:"limit" doc:"Most items in the answer" default:"20" minimum:"1" maximum:"1000"`
}

// addRenderings registers the questions about the configurations of hosts.
func (s *Server) addRenderings() {
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/hosts/{host}/render", ID: "render-host", Scope: rest.OfPools, Tag: "hosts",
		Summary: "Show what a host would be given to become, and what is wrong with that", Errors: []int{http.StatusNotFound},
		About: "Secrets are shown by their references. The difference is against what the host was given last.",
	},
		func(req *rest.Request, in *rest.HostRef) (*rest.One[configuration.Preview], error) {
			return s.preview(req, in.Host, nil)
		})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodPost, Path: "/hosts/{host}/render", ID: "render-draft", Scope: rest.OfPools, Tag: "hosts", Body: configBody, Asks: true,
		Summary: "Show what a host would be given with a draft of a profile", Errors: []int{http.StatusNotFound},
		About: "The draft is not stored. A name is not needed.",
	},
		func(req *rest.Request, in *draftInput) (*rest.One[configuration.Preview], error) {
			draft := in.Body
			draft.Name = cmp.Or(draft.Name, "draft")
			draft.Revision = 0
			if err := draft.Validate(); err != nil {
				return nil, err
			}
			return s.preview(req, in.Host, &draft)
		})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/hosts/{host}/renderings", ID: "list-renderings", Scope: rest.OfPools, Tag: "hosts",
		AtAny:   true,
		Summary: "List what a host was given, latest first", Errors: []int{http.StatusNotFound},
		About: "Without the documents; a boot session names its rendering by digest.",
	}, s.hostRenderings)
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/renderings/{digest}", ID: "get-rendering", AtAny: true, Scope: rest.OfPools, Tag: "hosts",
		Summary: "Show what a host was given, with secrets by their references", Errors: []int{http.StatusNotFound},
	},
		func(req *rest.Request, in *digestInput) (*rest.One[inventory.Rendering], error) {
			d, err := inventory.ParseDigest(in.Digest)
			if err != nil {
				return nil, err
			}
			r, err := rest.Read(req, s.rest.Store, func(tx inventory.Tx) (inventory.Rendering, error) { return tx.FindRendering(d) })
			return &rest.One[inventory.Rendering]{Body: configuration.Redacted(r)}, err
		})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/capabilities", ID: "get-capabilities", Scope: rest.OfNobody, Tag: "profiles", Errors: []int{http.StatusNotFound},
		Summary: "Show how well each format carries each part of a configuration",
		About:   "To an image, or to an operating system and release; formats differ with the version of the tool that reads them.",
	}, s.capabilities)
}

func (s *Server) preview(req *rest.Request, ref string, draft *inventory.Profile) (*rest.One[configuration.Preview], error) {
	if s.cfg.Renderer == nil {
		return nil, errNoConfigs()
	}
	h, err := s.rest.ReadHost(req, ref)
	if err != nil {
		return nil, err
	}
	p, err := s.cfg.Renderer.Preview(req, h.ID, draft)
	return &rest.One[configuration.Preview]{Body: p}, err
}

func (s *Server) hostRenderings(req *rest.Request, in *hostRenderingsInput) (out *rest.One[rest.List[inventory.Rendering]], err error) {
	out = &rest.One[rest.List[inventory.Rendering]]{Body: rest.List[inventory.Rendering]{Items: []inventory.Rendering{}}}
	err = s.rest.Store.Read(req, func(tx inventory.Tx) error {
		h, err := rest.FindHost(tx, in.Host)
		if err != nil {
			return err
		}
		rows, err := tx.ListRenderings(h.ID, in.Limit)
		for _, r := range rows {
			r.Documents = []inventory.RenderedDocument{}
			out.Body.Items = append(out.Body.Items, r)
		}
		return err
	})
	return out, err
}

type capabilitiesInput struct {
	Image   string         `query:"image" doc:"An image that is stored; it says the rest" maxLength:"63"`
	OS      string         `query:"os" doc:"Entry of the catalogue, such as flatcar" maxLength:"63"`
	Release string         `query:"release" maxLength:"63"`
	Arch    inventory.Arch `query:"arch" enum:"x86_64,i386,arm64" default:"x86_64"`
}

func (s *Server) capabilities(req *rest.Request, in *capabilitiesInput) (*rest.One[wire.CapabilityTable], error) {
	if s.cfg.Renderer == nil {
		return nil, errNoConfigs()
	}
	t, configs, err := s.targetOf(req, in)
	if err != nil {
		return nil, err
	}
	out := wire.CapabilityTable{Target: t.String(), Formats: []wire.CapabilityColumn{}}
	for _, f := range machineconfig.Fields() {
		out.Fields = append(out.Fields, wire.CapabilityField(f))
	}
	for format, cells := range s.cfg.Renderer.Capabilities(t) {
		c := wire.CapabilityColumn{Format: format, Cells: map[string]wire.CapabilityCell{}}
		if i := slices.IndexFunc(configs, func(c inventory.ImageConfig) bool { return c.Format == format }); i >= 0 {
			c.IsRead, c.Tool = true, configs[i].Version
			t.Tool, t.InitrdPath = configs[i].Version, configs[i].InitrdPath
			cells = s.cfg.Renderer.Capabilities(t)[format]
		}
		for path, cell := range cells {
			c.Cells[path] = wire.CapabilityCell{Support: cell.Support.String(), Note: cell.Note}
		}
		out.Formats = append(out.Formats, c)
	}
	slices.SortFunc(out.Formats, func(a, b wire.CapabilityColumn) int { return cmp.Compare(a.Format, b.Format) })
	return &rest.One[wire.CapabilityTable]{Body: out}, nil
}

// targetOf returns the target of a request and the formats that it reads.
func (s *Server) targetOf(req *rest.Request, in *capabilitiesInput) (t machineconfig.Target, configs []inventory.ImageConfig, err error) {
	t = machineconfig.Target{OS: in.OS, Release: in.Release, Arch: in.Arch}
	if in.Image != "" {
		err = s.rest.Store.Read(req, func(tx inventory.Tx) error {
			i, err := tx.Images().Find(in.Image)
			t.OS, t.Release, t.Arch, configs = i.OS, i.Release, i.Arch, i.Configs
			return err
		})
		return t, configs, err
	}
	for _, e := range s.cfg.Catalogue {
		if e.OS == in.OS && (in.Release == "" || slices.Contains(e.Releases, in.Release)) {
			for _, c := range e.Configs {
				configs = append(configs, inventory.ImageConfig(c))
			}
			return t, configs, nil
		}
	}
	if in.OS != "" {
		return t, nil, inventory.Errorf(inventory.NotFound, "the catalogue has no %s", inventory.Clean(t.String(), 80)).
			WithHint("list it with: slipway image catalogue")
	}
	return t, nil, nil
}
