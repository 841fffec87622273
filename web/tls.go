package web

import (
	"net/http"
	"time"

	"slipway.dev/slipway/inventory"
)

// TLSKeeper has the certificate of the admin door.
type TLSKeeper interface {
	TLSState() TLSState
	// SetTLS checks and stores a certificate and its key, both PEM; they are in force at once.
	SetTLS(cert, key []byte) error
	// DropTLS takes what SetTLS stored away.
	DropTLS() error
}

// Where the certificate of the admin door comes from.
const (
	TLSFiles    = "files"    // named in the settings
	TLSUploaded = "uploaded" // through this API
	TLSSite     = "site"     // signed by this site's own authority, for whatever address is asked
)

// TLSState is how the admin door speaks.
type TLSState struct {
	IsOn        bool      `json:"isOn" doc:"false: the listener is on loopback and speaks without TLS"`
	From        string    `json:"from,omitempty" enum:"files,uploaded,site" doc:"Where the certificate comes from; site is this site's own authority, which signs one for each address"`
	Subject     string    `json:"subject,omitempty"`
	Issuer      string    `json:"issuer,omitempty"`
	Names       []string  `json:"names,omitempty" doc:"Names and addresses that it is good for"`
	NotBefore   time.Time `json:"notBefore,omitzero"`
	NotAfter    time.Time `json:"notAfter,omitzero"`
	Fingerprint string    `json:"fingerprint,omitempty" doc:"SHA-256 of the certificate in hex; of the authority's where from is site"`
	CA          string    `json:"ca,omitempty" doc:"The authority's certificate, PEM, where from is site; clients trust it with --ca-file"`
	IsPrepared  bool      `json:"isPrepared,omitempty" doc:"The authority that comes after is made; ca has it, too"`
	Refused     string    `json:"refused,omitempty" doc:"Why the newest files are not in force"`
}

// TLSPair is a certificate for the admin door.
type TLSPair struct {
	Certificate string `json:"certificate" maxLength:"65536" doc:"PEM, followed by those between it and its authority"`
	Key         string `json:"key" maxLength:"65536" doc:"PEM; the server stores it next to the database and never shows it"`
}

// addTLS registers the operations on the certificate of the admin door.
func (s *Server) addTLS() {
	register(s.rest, operation{
		method: http.MethodGet, path: "/tls", id: "get-tls", tag: "tls", summary: "Show the certificate of the admin listener", scope: ofNobody,
	}, func(*Request, *struct{}) (*one[TLSState], error) {
		if s.cfg.TLS == nil {
			return &one[TLSState]{}, nil
		}
		return &one[TLSState]{Body: s.cfg.TLS.TLSState()}, nil
	})
	register(s.rest, operation{
		method: http.MethodPut, path: "/tls", id: "put-tls", tag: "tls", summary: "Upload a certificate for the admin listener", needs: inventory.Admin,
		about: "It is in force for the next connection.", errors: []int{http.StatusConflict},
	}, func(_ *Request, in *struct{ Body TLSPair }) (*one[TLSState], error) {
		if s.cfg.TLS == nil {
			return nil, errNoTLS()
		}
		if err := s.cfg.TLS.SetTLS([]byte(in.Body.Certificate), []byte(in.Body.Key)); err != nil {
			return nil, err
		}
		return &one[TLSState]{Body: s.cfg.TLS.TLSState()}, nil
	})
	register(s.rest, operation{
		method: http.MethodDelete, path: "/tls", id: "delete-tls", tag: "tls", summary: "Take an uploaded certificate away", needs: inventory.Admin,
		about: "The site's own authority signs for the admin listener again.", status: http.StatusNoContent, errors: []int{http.StatusConflict, http.StatusNotFound},
	}, func(*Request, *struct{}) (*struct{}, error) {
		if s.cfg.TLS == nil {
			return nil, errNoTLS()
		}
		return nil, s.cfg.TLS.DropTLS()
	})
}

// addAuthorities registers the rotation of this site's own authorities.
func (s *Server) addAuthorities() {
	register(s.rest, operation{
		method: http.MethodPost, path: "/tls/authority", id: "rotate-authority", tag: "tls", summary: "Replace this site's own authority of a listener", needs: inventory.Admin,
		about:  "In two steps. The first makes the next authority, for clients to trust it. With isFinish it is in force, and the old one is deleted.",
		errors: []int{http.StatusConflict}, status: http.StatusNoContent,
	}, func(_ *Request, in *struct {
		Body struct {
			Door     string `json:"door" enum:"admin,boot"`
			IsFinish bool   `json:"isFinish,omitempty" doc:"Put it in force"`
		}
	},
	) (*struct{}, error) {
		if s.cfg.RotateAuthority == nil {
			return nil, errNoTLS()
		}
		return nil, s.cfg.RotateAuthority(in.Body.Door, in.Body.IsFinish)
	})
}

func errNoTLS() error {
	return inventory.Errorf(inventory.Conflict, "the admin listener speaks without TLS").
		WithHint("start the server with --admin-listen on an address beyond loopback, or with --admin-tls-cert and --admin-tls-key")
}
