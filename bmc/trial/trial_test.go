package trial

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/bmc/fake"
	"slipway.dev/slipway/bmc/redfish"
	"slipway.dev/slipway/bmc/webhook"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/egress"
)

// A connection that fails says at which step: everything before it is good, and nothing follows.
func TestAConnectionSaysAtWhichStepItFails(t *testing.T) {
	controller := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch _, password, _ := r.BasicAuth(); {
		case r.Header.Get("X-Weak") != "":
			w.WriteHeader(http.StatusForbidden)
		case password != "right":
			w.WriteHeader(http.StatusUnauthorized)
		default:
			_, _ = w.Write([]byte(`{"power":"on"}`))
		}
	})
	open, secure := httptest.NewServer(controller), httptest.NewTLSServer(controller)
	t.Cleanup(open.Close)
	t.Cleanup(secure.Close)
	sum := sha256.Sum256(secure.Certificate().Raw)
	own := hex.EncodeToString(sum[:])
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nowhere := "http://" + closed.Addr().String()
	closed.Close()
	allowed := egress.New(egress.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	options := map[string]string{"on.path": "/on", "off.path": "/off", "status.path": "/power", "status.pointer": "/power", "auth": "basic"}
	for _, x := range []struct {
		name, address, password, fingerprint string
		edit                                 func(*bmc.Target)
		last, says, hint                     string
		isGood                               bool
	}{
		{name: "all is well", address: open.URL, password: "right", last: "login", says: "power is on", isGood: true},
		{name: "a wrong password", address: open.URL, password: "wrong", last: "login"},
		{name: "an account without rights", address: open.URL, password: "right", last: "rights", edit: func(b *bmc.Target) { b.Options["header.X-Weak"] = "1" }},
		{name: "a name that nobody knows", address: "http://bmc-7.invalid", password: "right", last: "name", says: "the name bmc-7.invalid is not known", hint: "spelling"},
		{name: "nothing there", address: nowhere, password: "right", last: "connect", says: "nothing takes connections at 127.0.0.1", hint: "firewalls"},
		{name: "an address that may not be connected to", address: open.URL, password: "right", last: "connect", says: "egress policy refuses", hint: "--egress-allow", edit: func(b *bmc.Target) { b.Egress = egress.New(egress.Config{}) }},
		{name: "a certificate that nobody signed", address: secure.URL, password: "right", last: "tls", says: "signed its certificate", hint: own},
		{name: "another certificate", address: secure.URL, password: "right", fingerprint: strings.Repeat("ab", 32), last: "tls", says: "another fingerprint", hint: own},
		{name: "the certificate that was named", address: secure.URL, password: "right", fingerprint: own, last: "login", isGood: true},
		{name: "no TLS", address: "https" + strings.TrimPrefix(open.URL, "http"), password: "right", last: "tls", says: "speaks no TLS"},
		{name: "an option of another driver", address: open.URL, password: "right", last: "options", says: "no option", edit: func(b *bmc.Target) { b.Driver = inventory.Redfish }},
	} {
		t.Run(x.name, func(t *testing.T) {
			target := bmc.Target{BMC: inventory.BMC{Driver: inventory.Webhook, Address: x.address, Username: "root", Fingerprint: x.fingerprint, Options: map[string]string{}}, Password: x.password, Egress: allowed}
			for k, v := range options {
				target.Options[k] = v
			}
			if x.edit != nil {
				x.edit(&target)
			}
			steps, power := Run(context.Background(), target, func(t bmc.Target) (bmc.Driver, error) {
				if t.Driver == inventory.Redfish {
					return redfish.Open(t)
				}
				return webhook.Open(t)
			})
			if len(steps) == 0 {
				t.Fatal("no step")
			}
			for _, s := range steps[:len(steps)-1] {
				if s.Err != nil || s.Detail == "" {
					t.Errorf("before the last step: %+v", s)
				}
			}
			last := steps[len(steps)-1]
			text, hint := last.Detail, ""
			if e, ok := last.Err.(*inventory.Error); ok {
				text, hint = e.Msg, e.Hint
			}
			if last.Name != x.last || (last.Err == nil) != x.isGood || !strings.Contains(text, x.says) || !strings.Contains(hint, x.hint) || text == "" {
				t.Errorf("%s: %q, %q (%v)", last.Name, text, hint, last.Err)
			}
			if x.isGood != (power == inventory.PowerOn) {
				t.Errorf("power is %q", power)
			}
		})
	}
}

func TestADriverWithoutAnAddressIsAskedAtOnce(t *testing.T) {
	bank := fake.New(fake.Options{})
	t.Cleanup(func() { bank.Close() })
	steps, power := Run(context.Background(), bmc.Target{BMC: inventory.BMC{Driver: inventory.FakeBMC, System: "a"}}, bank.Open)
	if len(steps) != 2 || steps[0].Name != "login" || steps[1].Name != "rights" || failed(steps) || power == inventory.PowerUnknown {
		t.Errorf("%+v, %s", steps, power)
	}
}

// TestWhoIsNotAdminEverywhereLearnsNothingOfTheNetwork: a closed port, a name that is not known and a port of something else are one.
func TestWhoIsNotAdminEverywhereLearnsNothingOfTheNetwork(t *testing.T) {
	said := map[string][]string{}
	for name, steps := range map[string][]Step{
		"a closed port": {{Name: "name", Detail: "bmc is 10.0.0.7"}, {Name: "connect", Err: problem("nothing takes connections", "", errors.New("refused"))}},
		"a silent one":  {{Name: "connect", Err: problem("nothing takes connections", "", context.DeadlineExceeded)}},
		"another port":  {{Name: "connect", Detail: "it takes connections"}, {Name: "tls", noTLS: true, Err: problem("it speaks no TLS", "", errors.New("x"))}},
		"no name":       {{Name: "name", Err: problem("the name is not known", "", errors.New("x"))}},
	} {
		all := Discreet(steps)
		if len(all) != 1 {
			t.Fatalf("%s: %+v", name, all)
		}
		e := all[0].Err.(*inventory.Error)
		text := all[0].Name + e.Msg + e.Hint
		said[text] = append(said[text], name)
	}
	if len(said) != 1 {
		t.Errorf("told apart: %v", said)
	}
	good := []Step{{Name: "name", Detail: "x"}, {Name: "connect", Detail: "x"}, {Name: "tls", Detail: "trusted"}, {Name: "login", Detail: "power is on"}}
	if all := Discreet(good); len(all) != 2 || all[0].Name != "tls" || all[1].Name != "login" {
		t.Errorf("what is well: %+v", all)
	}
}
