package system

import (
	"net/http"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

// Where the certificate of the admin door comes from.
const (
	TLSFiles    = "files"    // named in the settings
	TLSUploaded = "uploaded" // through this API
	TLSSite     = "site"     // signed by this site's own authority, for whatever address a client uses
)

// TLSPair is a certificate for the admin listener.
type TLSPair struct {
	Certificate string `json:"certificate" maxLength:"65536" doc:"PEM, followed by those between it and its authority"`
	Key         string `json:"key" maxLength:"65536" doc:"PEM; the server stores it next to the database and never shows it"`
}

// addTLS registers the operations on the certificate of the admin door.
func (s *Server) addTLS() {
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/tls", ID: "get-tls", Tag: "tls",
		Summary: "Show the certificate of the admin listener", Scope: rest.OfNobody,
	}, func(*rest.Request, *struct{}) (*rest.One[wire.TLSState], error) {
		if s.cfg.TLS == nil {
			return &rest.One[wire.TLSState]{}, nil
		}
		return &rest.One[wire.TLSState]{Body: s.cfg.TLS.TLSState()}, nil
	})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodPut, Path: "/tls", ID: "put-tls", Tag: "tls",
		Summary: "Upload a certificate for the admin listener", Needs: inventory.Admin,
		About: "It is in force for the next connection.", Errors: []int{http.StatusConflict},
	}, func(r *rest.Request, in *struct{ Body TLSPair }) (*rest.One[wire.TLSState], error) {
		if s.cfg.TLS == nil {
			return nil, errNoTLS()
		}
		if err := s.cfg.TLS.SetTLS(r, []byte(in.Body.Certificate), []byte(in.Body.Key)); err != nil {
			return nil, err
		}
		return &rest.One[wire.TLSState]{Body: s.cfg.TLS.TLSState()}, nil
	})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodDelete, Path: "/tls", ID: "delete-tls", Tag: "tls",
		Summary: "Take an uploaded certificate away", Needs: inventory.Admin,
		About: "The site's own authority signs for the admin listener again.", Status: http.StatusNoContent, Errors: []int{http.StatusConflict, http.StatusNotFound},
	}, func(r *rest.Request, _ *struct{}) (*struct{}, error) {
		if s.cfg.TLS == nil {
			return nil, errNoTLS()
		}
		return nil, s.cfg.TLS.DropTLS(r)
	})
}

// addAuthorities registers the rotation of this site's own authorities.
func (s *Server) addAuthorities() {
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodPost, Path: "/tls/authority", ID: "rotate-authority", Tag: "tls",
		Summary: "Replace this site's own authority of a listener", Needs: inventory.Admin,
		About:  "In two steps. The first makes the next authority, for clients to trust it. With isFinish it is in force, and the old one is deleted.",
		Errors: []int{http.StatusConflict}, Status: http.StatusNoContent,
	}, func(r *rest.Request, in *struct {
		Body struct {
			Door     string `json:"door" enum:"admin,boot"`
			IsFinish bool   `json:"isFinish,omitempty" doc:"Put it in force"`
		}
	},
	) (*struct{}, error) {
		if s.cfg.RotateAuthority == nil {
			return nil, errNoTLS()
		}
		return nil, s.cfg.RotateAuthority(r, in.Body.Door, in.Body.IsFinish)
	})
}

func errNoTLS() error {
	return inventory.Errorf(inventory.Conflict, "the admin listener speaks without TLS").
		WithHint("start the server with --admin-listen on an address beyond loopback, or with --admin-tls-cert and --admin-tls-key")
}
