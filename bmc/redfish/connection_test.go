package redfish

import (
	"context"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/bmc/redfish/redfishtest"
	"slipway.dev/slipway/inventory"
)

func TestTheCertificateIsVerifiedOrPinned(t *testing.T) {
	srv := redfishtest.New(redfishtest.Options{User: "slipway", Password: canary}).StartTLS(t)
	pin := fingerprint(srv.Certificate().Raw)
	colons := strings.ToUpper(pin[:2])
	for i := 2; i < len(pin); i += 2 {
		colons += ":" + strings.ToUpper(pin[i:i+2])
	}
	for _, tc := range []struct {
		name   string
		change func(*bmc.Target)
		kind   inventory.Kind
		hint   string
	}{
		{"a certificate that nobody vouches for is refused, and its fingerprint told", func(*bmc.Target) {}, inventory.Invalid, pin},
		{"the pinned certificate is taken", func(to *bmc.Target) { to.Fingerprint = pin }, "", ""},
		{"the pin may be written as openssl does", func(to *bmc.Target) { to.Fingerprint = colons }, "", ""},
		{"another certificate than the pinned one is refused", func(to *bmc.Target) { to.Fingerprint = strings.Repeat("ab", 32) }, inventory.Invalid, pin},
		{"a pin counts even when nothing is verified", func(to *bmc.Target) {
			to.Fingerprint, to.InsecureSkipVerify = strings.Repeat("ab", 32), true
		}, inventory.Invalid, pin},
		{"any certificate is taken when nothing is verified", func(to *bmc.Target) { to.InsecureSkipVerify = true }, "", ""},
		{"TLS is not spoken to a plain server", func(to *bmc.Target) {
			_, plain := start(t, redfishtest.Options{IsPlain: true})
			to.Address = strings.Replace(plain.Address, "http:", "https:", 1)
		}, inventory.Unavailable, "http or https"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			to := target(srv.URL)
			to.InsecureSkipVerify = false
			tc.change(&to)
			_, err := drive(t, to).Power(t.Context())
			if tc.kind == "" {
				ok(t, err)
				return
			}
			is(t, err, tc.kind)
			var e *inventory.Error
			if errors.As(err, &e); !strings.Contains(e.Hint, tc.hint) {
				t.Errorf("the hint %q does not say %q", e.Hint, tc.hint)
			}
		})
	}
}

func TestOpenRefusesWhatIsNoTarget(t *testing.T) {
	for name, change := range map[string]func(*bmc.Target){
		"no URL":                   func(to *bmc.Target) { to.Address = "10.0.0.5" },
		"a user in the URL":        func(to *bmc.Target) { to.Address = "https://u:p@10.0.0.5" },
		"another protocol":         func(to *bmc.Target) { to.Address = "ftp://10.0.0.5" },
		"half a fingerprint":       func(to *bmc.Target) { to.Fingerprint = hex.EncodeToString([]byte("short")) },
		"a timeout that is none":   func(to *bmc.Target) { to.Options = map[string]string{OptionTimeout: "soon"} },
		"a timeout that is a week": func(to *bmc.Target) { to.Options = map[string]string{OptionTimeout: "168h"} },
		"an unknown login":         func(to *bmc.Target) { to.Options = map[string]string{OptionAuth: "kerberos"} },
	} {
		t.Run(name, func(t *testing.T) {
			to := target("https://192.0.2.1")
			change(&to)
			_, err := Open(to)
			is(t, err, inventory.Invalid)
		})
	}
}

func TestOneSessionServesAllCallsAndEndsWithClose(t *testing.T) {
	s, d := drives(t, redfishtest.Standard, &redfishtest.Memory{})
	for range 3 {
		_, err := d.Power(t.Context())
		ok(t, err)
	}
	if n := s.Sessions(); n != 1 {
		t.Errorf("%d sessions, want 1", n)
	}
	ok(t, d.Close())
	if n := s.Sessions(); n != 0 {
		t.Errorf("%d sessions after Close, want none", n)
	}
	ok(t, d.Close())
}

func TestALoginFindsTheWayThatIsThere(t *testing.T) {
	for _, tc := range []struct {
		name     string
		o        redfishtest.Options
		auth     string
		busy     int // sessions of others
		refuse   int // status of a login
		kind     inventory.Kind
		sessions int
	}{
		{name: "a session", sessions: 1},
		{name: "basic authentication where there are no sessions, and a login would look like a wrong password", refuse: 401, o: redfishtest.Options{HasNoSessions: true}},
		{name: "basic authentication where sessions are shown and not made", refuse: 405},
		{name: "basic authentication where no session is free", o: redfishtest.Options{MaxSessions: 1}, busy: 1, sessions: 1},
		{name: "basic authentication when asked for", auth: "basic"},
		{name: "no way when a session is asked for and there are none", auth: "session", o: redfishtest.Options{HasNoSessions: true}, kind: inventory.Invalid},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, to := start(t, tc.o)
			for range tc.busy {
				_, err := drive(t, to).Power(t.Context())
				ok(t, err)
			}
			if tc.refuse > 0 {
				s.Script(redfishtest.Fault{Method: "POST", Do: redfishtest.Status(tc.refuse)})
			}
			to.Options = map[string]string{OptionAuth: tc.auth}
			_, err := drive(t, to).Power(t.Context())
			if tc.kind != "" {
				is(t, err, tc.kind)
				return
			}
			ok(t, err)
			if n := s.Sessions(); n != tc.sessions {
				t.Errorf("%d sessions, want %d", n, tc.sessions)
			}
		})
	}
}

func TestAWrongPasswordIsTriedOncePerCall(t *testing.T) {
	for _, dialect := range []redfishtest.Dialect{redfishtest.Standard, redfishtest.ILO} { // iLO refuses with 400
		s, to := start(t, redfishtest.Options{Dialect: dialect})
		to.Password = "wrong"
		_, err := drive(t, to).Power(t.Context())
		is(t, err, inventory.Unauthorized)
		if n := s.Refused(); n != 1 {
			t.Errorf("%s: credentials were refused %d times, want once: more would lock the account", dialect.Name, n)
		}
	}
}

func TestAnExpiredSessionIsRenewedOnce(t *testing.T) {
	s, d := drives(t, redfishtest.Standard, &redfishtest.Memory{})
	_, err := d.Power(t.Context())
	ok(t, err)
	s.EndSessions()
	_, err = d.Power(t.Context())
	ok(t, err)
	logins := 0
	for _, r := range s.Requests() {
		if r.String() == "POST /redfish/v1/SessionService/Sessions" {
			logins++
		}
	}
	if logins != 2 {
		t.Errorf("%d logins, want 2", logins)
	}
}

func TestPlainHTTPThatLeadsToHTTPSIsFollowedBeforeAnythingSecretIsSent(t *testing.T) {
	s := redfishtest.New(redfishtest.Options{User: "slipway", Password: canary})
	secure := s.StartTLS(t)
	var saw []string
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		saw = append(saw, r.Method+r.Header.Get("Authorization")+r.Header.Get("X-Auth-Token"))
		http.Redirect(w, r, secure.URL+r.URL.Path, http.StatusMovedPermanently)
	}))
	t.Cleanup(plain.Close)
	d := drive(t, target(plain.URL))
	_, err := d.Power(t.Context())
	ok(t, err)
	if !slices.Equal(saw, []string{"GET"}) {
		t.Errorf("the plain server saw %q, want one bare GET", saw)
	}
}

func TestNoTokenLeavesForAnotherHost(t *testing.T) {
	var asked int
	other := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	t.Cleanup(other.Close)
	away := strings.Replace(other.URL, "127.0.0.1", "localhost", 1)
	for name, effect := range map[string]redfishtest.Effect{
		"by a redirect":                 redfishtest.Redirect(307, away+"/redfish/v1/Systems/1"),
		"by a redirect to another port": redfishtest.Redirect(307, other.URL+"/redfish/v1/Systems/1"),
		"by a link":                     redfishtest.Body(`{"Members":[{"@odata.id":"` + other.URL + `/redfish/v1/Systems/1"}]}`),
		"by a link without scheme":      redfishtest.Body(`{"Members":[{"@odata.id":"//` + strings.TrimPrefix(other.URL, "https://") + `/redfish/v1/Systems/1"}]}`),
	} {
		t.Run(name, func(t *testing.T) {
			s, d := drives(t, redfishtest.Standard, &redfishtest.Memory{})
			s.Script(redfishtest.Fault{Path: "/redfish/v1/Systems", Do: effect})
			if _, err := d.Power(t.Context()); err == nil {
				t.Error("it went along")
			}
			if asked > 0 {
				t.Error("the other host was asked")
			}
		})
	}
}

func TestAChangeSendsTheTagItRead(t *testing.T) {
	for _, tc := range []struct {
		name      string
		dialect   redfishtest.Dialect
		status    int      // that the first PATCH is refused with
		overtaken int      // PATCHes that come too late
		want      []string // If-Match of each PATCH
		kind      inventory.Kind
	}{
		{name: "as it was read", dialect: redfishtest.Standard, want: []string{`"1000"`}},
		{name: "a document that someone else changed is read again", dialect: redfishtest.Standard, overtaken: 1, want: []string{`"1000"`, `"1001"`}},
		{name: "and only once", dialect: redfishtest.Standard, overtaken: 9, want: []string{`"1000"`, `"1001"`}, kind: inventory.Unavailable},
		{name: "none where none is given out", dialect: redfishtest.IDRAC8, want: []string{""}},
		{name: "a controller that wants one gets any", dialect: redfishtest.IDRAC8, status: 428, want: []string{"", "*"}},
		{name: "a strong tag that is refused although it is current is left out", dialect: redfishtest.Standard, status: 412, want: []string{`"1000"`, ""}},
		{name: "a weak tag that is refused although it is current goes as a strong one", dialect: redfishtest.IDRAC, status: 412, want: []string{`W/"1000"`, `"1000"`}},
		{name: "a controller that refuses the weak tags it gives out", dialect: redfishtest.AMI, want: []string{`W/"1000"`, `"1000"`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, d := drives(t, tc.dialect, &redfishtest.Memory{})
			if tc.status > 0 {
				s.Script(redfishtest.Fault{Method: "PATCH", Times: 1, Do: redfishtest.Status(tc.status)})
			}
			if tc.overtaken > 0 {
				s.Script(redfishtest.Fault{Method: "PATCH", Times: tc.overtaken, Do: s.Overtake()})
			}
			err := d.SetBoot(t.Context(), bmc.Boot{Device: bmc.PXE})
			if tc.kind == "" {
				ok(t, err)
			} else {
				is(t, err, tc.kind)
			}
			var got []string
			for _, r := range s.Requests() {
				if r.Method == http.MethodPatch {
					got = append(got, r.IfMatch)
				}
				if r.Method == http.MethodPost && r.IfMatch != "" {
					t.Errorf("%s was sent with If-Match", r)
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("If-Match was %q, want %q", got, tc.want)
			}
		})
	}
}

func TestACallEndsWithItsContext(t *testing.T) {
	s, d := drives(t, redfishtest.Standard, &redfishtest.Memory{})
	s.Script(redfishtest.Fault{Do: redfishtest.Hang()})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := d.Power(ctx)
	is(t, err, inventory.Unavailable)
}

func TestTheSystemIsChosen(t *testing.T) {
	two := []redfishtest.System{{ID: "node1", Machine: &redfishtest.Memory{}}, {ID: "node2", Machine: &redfishtest.Memory{Powered: true}}}
	for _, tc := range []struct {
		name, system string
		want         inventory.PowerState
		kind         inventory.Kind
		says         string
	}{
		{"by its id", "node2", inventory.PowerOn, "", ""},
		{"by its serial number", "sn-NODE2", inventory.PowerOn, "", ""},
		{"never by chance", "", "", inventory.Invalid, "node1, node2"},
		{"not when it is not there", "node3", "", inventory.NotFound, "node1, node2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, to := start(t, redfishtest.Options{Systems: two})
			to.System = tc.system
			got, err := drive(t, to).Power(t.Context())
			if tc.kind == "" {
				ok(t, err)
				if got != tc.want {
					t.Errorf("the power is %q, want %q", got, tc.want)
				}
				return
			}
			is(t, err, tc.kind)
			var e *inventory.Error
			if errors.As(err, &e); !strings.Contains(e.Msg+e.Hint, tc.says) {
				t.Errorf("%q (%s) does not name the systems", e.Msg, e.Hint)
			}
		})
	}
}

// Whatever a controller repeats of what it was sent, no error tells it.
func TestNoErrorTellsAPassword(t *testing.T) {
	const fresh = "another-Pa55word"
	for _, auth := range []string{"session", "basic"} {
		for _, code := range []int{400, 401, 403, 404, 409, 412, 500, 503} {
			s, to := start(t, redfishtest.Options{})
			to.Options = map[string]string{OptionAuth: auth}
			d := drive(t, to)
			tell := func(what string, err error) {
				t.Helper()
				if err == nil {
					return
				}
				var e *inventory.Error
				if !errors.As(err, &e) {
					t.Errorf("%s: %T is no *inventory.Error", what, err)
					return
				}
				for _, text := range []string{e.Msg, e.Hint, err.Error()} {
					for _, secret := range []string{canary, fresh, canary[:9], fresh[:9], "token-", "c2xpcHdheTpjYW5hcnk"} {
						if strings.Contains(text, secret) {
							t.Errorf("%s %d by %s: %q tells %q", what, code, auth, text, secret)
						}
					}
				}
			}
			if auth == "session" {
				s.Script(redfishtest.Fault{Method: "POST", Do: redfishtest.Echo(code)})
				_, err := d.Power(t.Context())
				tell("login", err)
				s.Script()
				d = drive(t, to) // a refused login is not repeated
			}
			_, err := d.Power(t.Context())
			ok(t, err)
			_, err = d.Users(t.Context())
			ok(t, err)
			s.Script(redfishtest.Fault{Method: "PATCH", Do: redfishtest.Echo(code)}, redfishtest.Fault{Method: "POST", Do: redfishtest.Echo(code)})
			tell("set password", d.SetPassword(t.Context(), "slipway", fresh))
			tell("create user", d.CreateUser(t.Context(), "new", fresh))
			s.Script(redfishtest.Fault{Do: redfishtest.Echo(code)})
			_, err = d.Power(t.Context())
			tell("power", err)
			tell("check", d.CheckCredentials(t.Context()))
			tell("boot", d.SetBoot(t.Context(), bmc.Boot{Device: bmc.PXE}))
			for _, body := range []string{
				`{"Members":[{"@odata.id":"https://192.0.2.66/` + canary + `"}]}`, `{"Members":[{"@odata.id":"/redfish/v1/` + canary + `"},{"@odata.id":"/redfish/v1/2"}]}`,
				`{"@odata.id":"/redfish/v1/x","Boot":{"BootSourceOverrideTarget@Redfish.AllowableValues":["` + canary + `"]}}`,
				`{"Actions":{"#ComputerSystem.Reset":{"target":"` + canary + `"}}}`,
			} {
				s.Script(redfishtest.Fault{Method: "GET", Path: "/Systems", Do: redfishtest.Body(body)})
				d.path = ""
				_, err = d.Power(t.Context())
				tell("power", err)
				d.path = "/redfish/v1/Systems/437XR1138R2"
				tell("on", d.SetPower(t.Context(), bmc.On))
				tell("boot", d.SetBoot(t.Context(), bmc.Boot{Device: bmc.PXE}))
			}
			s.Script(redfishtest.Fault{Do: redfishtest.Echo(code)})
			tell("close", d.Close())
		}
	}
}

func TestAPasswordStaysHiddenAfterManyLogins(t *testing.T) {
	s, d := drives(t, redfishtest.Standard, &redfishtest.Memory{})
	for range 40 {
		s.EndSessions()
		_, err := d.Power(t.Context())
		ok(t, err)
	}
	if n := len(d.secrets); n > 16 {
		t.Errorf("%d old secrets are kept", n)
	}
	if got := d.hide("a " + canary + " b " + d.token + " c"); got != "a *** b *** c" {
		t.Errorf("it tells %q", got)
	}
}

func TestCallsAtTheSameTimeShareOneSession(t *testing.T) {
	s, d := drives(t, redfishtest.Standard, &redfishtest.Memory{Powered: true})
	for range 3 {
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() {
				if _, err := d.Power(t.Context()); err != nil {
					t.Error(err)
				}
				if _, err := d.Health(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := s.Sessions(); n != 1 {
			t.Errorf("%d sessions, want 1", n)
		}
		s.EndSessions()
	}
}

func TestASlowQuestionDoesNotHoldUpPower(t *testing.T) {
	s, d := drives(t, redfishtest.IDRAC, &redfishtest.Memory{Powered: true})
	_, err := d.Power(t.Context())
	ok(t, err)
	begun := make(chan struct{})
	s.Script(redfishtest.Fault{Path: "/Thermal", Do: func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
		close(begun)
		<-r.Context().Done()
	}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := d.Sensors(ctx)
		done <- err
	}()
	<-begun
	ok(t, d.SetPower(t.Context(), bmc.Off))
	cancel()
	is(t, <-done, inventory.Unavailable)
}
