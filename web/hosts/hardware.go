package hosts

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"slipway.dev/slipway/hardware/acceptance"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
)

type (
	hardwareInput struct {
		rest.HostRef
		N int `query:"n" doc:"Number of the inspection; 0 is the newest" minimum:"0"`
	}
	inspectionsInput struct {
		rest.HostRef
		Limit int `query:"limit" doc:"Most inspections" default:"20" minimum:"1" maximum:"100"`
	}
	reportsInput struct {
		rest.HostRef
		Kind  string `query:"kind" enum:"burn-in,wipe,install"`
		Limit int    `query:"limit" doc:"Most reports" default:"100" minimum:"1" maximum:"1000"`
	}
	sheetInput struct {
		rest.HostRef
		Accept string `header:"Accept" doc:"text/html for a page that can be printed"`
	}
)

// addHardware registers what is known of a host's hardware, and its acceptance sheet.
func (s *Server) addHardware() {
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/hosts/{host}/hardware", ID: "get-hardware", Scope: rest.OfPools, Tag: "hosts",
		AtAny:   true,
		Summary: "Show what a host is made of, as our agent found it", Errors: []int{http.StatusNotFound},
	},
		func(req *rest.Request, in *hardwareInput) (*rest.One[inventory.Inspection], error) {
			var i inventory.Inspection
			err := s.rest.OfHost(req, in.Host, func(tx inventory.Tx, h inventory.Host) (err error) {
				i, err = tx.FindInspection(h.ID, in.N)
				if inventory.IsKind(err, inventory.NotFound) && in.N == 0 {
					err = inventory.Errorf(inventory.NotFound, "host %s was never inspected", h.Name).WithHint("look at it with: slipway host inspect %s", h.Name)
				}
				return err
			})
			return &rest.One[inventory.Inspection]{Body: i}, err
		})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/hosts/{host}/inspections", ID: "list-inspections", Scope: rest.OfPools, Tag: "hosts",
		AtAny:   true,
		Summary: "List the inspections of a host, newest first", Errors: []int{http.StatusNotFound},
	},
		func(req *rest.Request, in *inspectionsInput) (*rest.One[rest.List[inventory.Inspection]], error) {
			out := rest.List[inventory.Inspection]{Items: []inventory.Inspection{}}
			err := s.rest.OfHost(req, in.Host, func(tx inventory.Tx, h inventory.Host) error {
				rows, err := tx.ListInspections(h.ID, in.Limit)
				out.Items = append(out.Items, rows...)
				return err
			})
			return &rest.One[rest.List[inventory.Inspection]]{Body: out}, err
		})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/hosts/{host}/reports", ID: "list-reports", AtAny: true, Scope: rest.OfPools, Tag: "hosts",
		Summary: "List the reports of burn-ins, wipes and installations of a host, newest first", Errors: []int{http.StatusNotFound},
	},
		func(req *rest.Request, in *reportsInput) (*rest.One[rest.List[inventory.Report]], error) {
			out := rest.List[inventory.Report]{Items: []inventory.Report{}}
			err := s.rest.OfHost(req, in.Host, func(tx inventory.Tx, h inventory.Host) error {
				rows, err := tx.ListReports(h.ID, in.Kind, in.Limit)
				out.Items = append(out.Items, rows...)
				return err
			})
			return &rest.One[rest.List[inventory.Report]]{Body: out}, err
		})
	s.addSheets()
}

// addSheets registers the acceptance sheet, as data and as a page.
func (s *Server) addSheets() {
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/hosts/{host}/report", ID: "get-report", Scope: rest.OfPools, Tag: "hosts", Result: acceptance.Sheet{},
		AtAny:   true,
		Summary: "Show the acceptance sheet of a host", Errors: []int{http.StatusNotFound}, About: "With Accept: text/html it is a page that can be printed.",
	},
		func(req *rest.Request, in *sheetInput) (*huma.StreamResponse, error) {
			return s.sheet(req, in.Host, strings.Contains(in.Accept, "text/html"))
		})
	s.rest.Describe(http.MethodGet, "/hosts/{host}/report", func(op *huma.Operation) {
		op.Responses["200"].Content["text/html"] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
	})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/hosts/{host}/report.html", ID: "get-report-page", Scope: rest.OfPools, Tag: "hosts", Plain: "text/html",
		AtAny:   true,
		Summary: "Show the acceptance sheet of a host as a page that can be printed", Errors: []int{http.StatusNotFound},
	},
		func(req *rest.Request, in *rest.HostRef) (*huma.StreamResponse, error) {
			return s.sheet(req, in.Host, true)
		})
}

// sheetReports bounds how far back a sheet looks.
const sheetReports = 500

// sheet writes the acceptance sheet of a host.
func (s *Server) sheet(req *rest.Request, ref string, isPage bool) (*huma.StreamResponse, error) {
	in := acceptance.Input{At: s.rest.Now()}
	err := s.rest.OfHost(req, ref, func(tx inventory.Tx, h inventory.Host) (err error) {
		in.Host = h
		i, err := tx.FindInspection(h.ID, 0)
		if in.Inspection, err = known(i, err); err != nil {
			return err
		}
		b, err := tx.FindBMC(h.ID)
		if in.BMC, err = known(b, err); err != nil {
			return err
		}
		if in.Reports, err = tx.ListReports(h.ID, "", sheetReports); err != nil {
			return err
		}
		in.Issues, err = tx.ListIssues(false, h.ID)
		return err
	})
	if err == nil {
		err = s.cfg.Conceal.Sheet(req, &in)
	}
	if err != nil {
		return nil, err
	}
	made := acceptance.New(in)
	kind, policy := "application/json", ""
	body, err := json.Marshal(made)
	if isPage && err == nil {
		kind, policy = "text/html; charset=utf-8", acceptance.ContentSecurityPolicy()+"; frame-ancestors 'none'"
		body, err = made.HTML()
	}
	if err != nil {
		return nil, fmt.Errorf("write acceptance sheet of %s: %w", in.Host.Name, err)
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		ctx.SetHeader("Content-Type", kind)
		if policy != "" {
			ctx.SetHeader("Content-Security-Policy", policy)
		}
		_, _ = ctx.BodyWriter().Write(body) // the client is gone if this fails
	}}, nil
}

// known turns what is not there into nil.
func known[T any](item T, err error) (*T, error) {
	if inventory.IsKind(err, inventory.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &item, nil
}
