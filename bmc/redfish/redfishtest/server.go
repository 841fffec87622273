package redfishtest

import (
	"bytes"
	"cmp"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// System is one machine of a service. ID is the dialect's when empty.
type System struct {
	ID      string
	Machine Machine
}

// Options say what a service is. The zero value is a standard one with one machine, for admin and secret.
type Options struct {
	Dialect        Dialect
	Systems        []System
	User, Password string
	HasNoSessions  bool // basic authentication only
	MaxSessions    int  // 0 for any number
	IsPlain        bool // HTTP instead of HTTPS
	ForgetsBoot    bool // takes boot overrides and does not keep them
}

// Request is one that came.
type Request struct {
	Method, Path, IfMatch, Body string
}

// String returns method and path.
func (r Request) String() string { return r.Method + " " + r.Path }

// Server is a Redfish service.
type Server struct {
	o Options

	mu       sync.Mutex
	script   []Fault
	requests []Request
	sessions map[string]string // token to id
	sessionN int
	refusedN int
	accountN int
	accounts []account
	boxes    []*box
	cleared  bool // the event log
}

// box is one machine and what its controller keeps of it.
type box struct {
	System
	rev     int // counts changes, for tags
	enabled string
	boot    Boot
	path    string // UefiTargetBootSourceOverride
	images  map[string]string
	isIn    map[string]bool
	isLit   bool
	posts   int
	heading *bool // where an order leads
}

type account struct {
	id, name, password, role string
	enabled                  bool
}

// doc is a JSON object.
type doc = map[string]any

// New makes a service.
func New(o Options) *Server {
	if o.Dialect.Name == "" {
		o.Dialect = Standard
	}
	if o.User == "" {
		o.User, o.Password = "admin", "secret"
	}
	if len(o.Systems) == 0 {
		o.Systems = []System{{Machine: &Memory{}}}
	}
	s := &Server{o: o, sessions: map[string]string{}}
	for _, sys := range o.Systems {
		sys.ID = cmp.Or(sys.ID, o.Dialect.SystemID)
		s.boxes = append(s.boxes, &box{
			System: sys, enabled: "Disabled", boot: Boot{Target: "None", Mode: o.Dialect.Mode}, images: map[string]string{}, isIn: map[string]bool{},
		})
	}
	s.accounts = []account{{"2", o.User, o.Password, "Administrator", true}}
	if n := o.Dialect.AccountSlots; n > 0 {
		s.accounts = append([]account{{id: "1"}}, s.accounts...)
		for i := 3; i <= n; i++ {
			s.accounts = append(s.accounts, account{id: fmt.Sprint(i), role: "None"})
		}
	}
	s.accountN = len(s.accounts) + 2
	return s
}

// Start serves on a free port of the loopback until the test ends, and returns the URL.
func (s *Server) Start(t testing.TB) string {
	t.Helper()
	srv := s.serve()
	t.Cleanup(srv.Close)
	return srv.URL
}

// StartTLS is Start, and returns the server too, for its certificate.
func (s *Server) StartTLS(t testing.TB) *httptest.Server {
	t.Helper()
	srv := s.serve()
	t.Cleanup(srv.Close)
	return srv
}

func (s *Server) serve() *httptest.Server {
	srv := httptest.NewUnstartedServer(s.Handler())
	srv.Config.ErrorLog = quiet()
	if s.o.IsPlain {
		srv.Start()
	} else {
		srv.StartTLS()
	}
	return srv
}

// Handler is the service.
func (s *Server) Handler() http.Handler {
	service := http.HandlerFunc(s.service)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		r.Body = io.NopCloser(bytes.NewReader(body))
		s.mu.Lock()
		s.requests = append(s.requests, Request{r.Method, r.URL.Path, r.Header.Get("If-Match"), string(body)})
		s.mu.Unlock()
		if effect := s.faultFor(r); effect != nil {
			effect(w, r, service)
			return
		}
		service(w, r)
	})
}

// Requests returns what came, in order.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Sessions returns how many sessions are open.
func (s *Server) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

// Refused returns how often credentials were wrong.
func (s *Server) Refused() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refusedN
}

// Touch changes all tags, as someone else's change of a document does.
func (s *Server) Touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.boxes[0].rev++
}

// EndSessions ends all sessions.
func (s *Server) EndSessions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.sessions)
}

// service answers as a controller does.
func (s *Server) service(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := strings.TrimRight(r.URL.Path, "/")
	w.Header().Set("OData-Version", "4.0")
	if r.Method == http.MethodPost && path == sessionsPath {
		s.open(w, r)
		return
	}
	if path != "/redfish/v1" && path != "/redfish" && !s.isAllowed(r) {
		complain(w, http.StatusUnauthorized, "Base.1.8.NoValidSession", "There is no valid session established with the implementation.")
		return
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		s.show(w, r, path)
	case http.MethodPatch:
		s.change(w, r, path)
	case http.MethodPost:
		s.act(w, r, path)
	case http.MethodDelete:
		s.remove(w, path)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

const sessionsPath = "/redfish/v1/SessionService/Sessions"

// open starts a session.
func (s *Server) open(w http.ResponseWriter, r *http.Request) {
	if s.o.HasNoSessions {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var in struct{ UserName, Password string }
	_ = json.NewDecoder(r.Body).Decode(&in)
	if !s.knows(in.UserName, in.Password) {
		if s.o.Dialect.BadLoginIs400 {
			complain(w, http.StatusBadRequest, "Base.1.4.UnauthorizedLoginAttempt", "")
		} else {
			complain(w, http.StatusUnauthorized, "Base.1.8.ResourceAtUriUnauthorized", "The authentication credentials included with this request are missing or invalid.")
		}
		return
	}
	if s.o.MaxSessions > 0 && len(s.sessions) >= s.o.MaxSessions {
		complain(w, http.StatusServiceUnavailable, "IDRAC.2.4.RAC0218", "The maximum number of user sessions is reached.")
		return
	}
	s.sessionN++
	id, token := fmt.Sprint(s.sessionN), fmt.Sprintf("token-%d-of-%s", s.sessionN, in.UserName)
	s.sessions[token] = id
	w.Header().Set("X-Auth-Token", token)
	w.Header().Set("Location", sessionsPath+"/"+id)
	reply(w, http.StatusCreated, doc{"@odata.id": sessionsPath + "/" + id, "Id": id, "Name": "User Session", "UserName": in.UserName})
}

func (s *Server) isAllowed(r *http.Request) bool {
	if token := r.Header.Get("X-Auth-Token"); token != "" {
		_, ok := s.sessions[token]
		return ok
	}
	user, password, ok := r.BasicAuth()
	return ok && s.knows(user, password)
}

func (s *Server) knows(user, password string) bool {
	for _, a := range s.accounts {
		if user != "" && a.name == user && a.enabled && subtle.ConstantTimeCompare([]byte(a.password), []byte(password)) == 1 {
			return true
		}
	}
	s.refusedN++
	return false
}
