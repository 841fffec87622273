package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"slipway.dev/slipway/hardware/acceptance"
	"slipway.dev/slipway/inventory"
)

type (
	hardwareInput struct {
		HostRef
		N int `query:"n" doc:"Number of the inspection; 0 is the newest" minimum:"0"`
	}
	inspectionsInput struct {
		HostRef
		Limit int `query:"limit" doc:"Most inspections" default:"20" minimum:"1" maximum:"100"`
	}
	reportsInput struct {
		HostRef
		Kind  string `query:"kind" enum:"burn-in,wipe,install"`
		Limit int    `query:"limit" doc:"Most reports" default:"100" minimum:"1" maximum:"1000"`
	}
	sheetInput struct {
		HostRef
		Accept string `header:"Accept" doc:"text/html for a page that can be printed"`
	}
)

// addHardware registers what is known of a host's hardware, and its acceptance sheet.
func (s *Server) addHardware() {
	register(s.rest, operation{
		method: http.MethodGet, path: "/hosts/{host}/hardware", id: "get-hardware", scope: ofPools, tag: "hosts",
		summary: "Show what a host is made of, as our agent found it", errors: []int{http.StatusNotFound},
	},
		func(req *Request, in *hardwareInput) (*one[inventory.Inspection], error) {
			var i inventory.Inspection
			err := s.ofHost(req, in.Host, func(tx inventory.Tx, h inventory.Host) (err error) {
				i, err = tx.FindInspection(h.ID, in.N)
				if inventory.IsKind(err, inventory.NotFound) && in.N == 0 {
					err = inventory.Errorf(inventory.NotFound, "host %s was never inspected", h.Name).WithHint("look at it with: slipway host inspect %s", h.Name)
				}
				return err
			})
			return &one[inventory.Inspection]{Body: i}, err
		})
	register(s.rest, operation{
		method: http.MethodGet, path: "/hosts/{host}/inspections", id: "list-inspections", scope: ofPools, tag: "hosts",
		summary: "List the inspections of a host, newest first", errors: []int{http.StatusNotFound},
	},
		func(req *Request, in *inspectionsInput) (*one[List[inventory.Inspection]], error) {
			out := List[inventory.Inspection]{Items: []inventory.Inspection{}}
			err := s.ofHost(req, in.Host, func(tx inventory.Tx, h inventory.Host) error {
				rows, err := tx.ListInspections(h.ID, in.Limit)
				out.Items = append(out.Items, rows...)
				return err
			})
			return &one[List[inventory.Inspection]]{Body: out}, err
		})
	register(s.rest, operation{
		method: http.MethodGet, path: "/hosts/{host}/reports", id: "list-reports", scope: ofPools, tag: "hosts",
		summary: "List the reports of burn-ins, wipes and installations of a host, newest first", errors: []int{http.StatusNotFound},
	},
		func(req *Request, in *reportsInput) (*one[List[inventory.Report]], error) {
			out := List[inventory.Report]{Items: []inventory.Report{}}
			err := s.ofHost(req, in.Host, func(tx inventory.Tx, h inventory.Host) error {
				rows, err := tx.ListReports(h.ID, in.Kind, in.Limit)
				out.Items = append(out.Items, rows...)
				return err
			})
			return &one[List[inventory.Report]]{Body: out}, err
		})
	s.addSheets()
}

// addSheets registers the acceptance sheet, as data and as a page.
func (s *Server) addSheets() {
	register(s.rest, operation{
		method: http.MethodGet, path: "/hosts/{host}/report", id: "get-report", scope: ofPools, tag: "hosts", result: acceptance.Sheet{},
		summary: "Show the acceptance sheet of a host", errors: []int{http.StatusNotFound}, about: "With Accept: text/html it is a page that can be printed.",
	},
		func(req *Request, in *sheetInput) (*huma.StreamResponse, error) {
			return s.sheet(req, in.Host, strings.Contains(in.Accept, "text/html"))
		})
	get := s.rest.api.OpenAPI().Paths["/api/v1/hosts/{host}/report"].Get
	get.Responses["200"].Content["text/html"] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
	register(s.rest, operation{
		method: http.MethodGet, path: "/hosts/{host}/report.html", id: "get-report-page", scope: ofPools, tag: "hosts", plain: "text/html",
		summary: "Show the acceptance sheet of a host as a page that can be printed", errors: []int{http.StatusNotFound},
	},
		func(req *Request, in *HostRef) (*huma.StreamResponse, error) {
			return s.sheet(req, in.Host, true)
		})
}

// ofHost runs fn on a host in one snapshot.
func (s *Server) ofHost(req *Request, ref string, fn func(inventory.Tx, inventory.Host) error) error {
	return s.rest.store.Read(req, func(tx inventory.Tx) error {
		h, err := findHost(tx, ref)
		if err != nil {
			return err
		}
		return fn(tx, h)
	})
}

// sheetReports bounds how far back a sheet looks.
const sheetReports = 500

// sheet writes the acceptance sheet of a host.
func (s *Server) sheet(req *Request, ref string, isPage bool) (*huma.StreamResponse, error) {
	in := acceptance.Input{At: s.cfg.Now()}
	err := s.ofHost(req, ref, func(tx inventory.Tx, h inventory.Host) (err error) {
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
		err = s.discreetly(req, func(d *discretion) error { return d.sheet(&in) })
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
