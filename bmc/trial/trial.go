// Package trial owns the test of a connection to a controller before anything is stored. It tests name, connection,
// certificate, login and rights, one after the other, so that an admin learns which of them fails. It never changes
// anything on the controller, and connects only to what the egress policy allows.
//
// Start reading at Run.
package trial

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/egress"
)

// Step is one step of the test. Err says why it failed; then it is the last step.
type Step struct {
	Name   string // name, connect, tls, login or rights
	Detail string // what came of it, when it went well
	Err    error
	noTLS  bool // something takes connections, and speaks no TLS
}

// connectFor bounds each of name, connection and certificate.
const connectFor = 10 * time.Second

// Run tests a connection: first the network, which needs no driver, then the login with the driver.
func Run(ctx context.Context, t bmc.Target, open bmc.Opener) (steps []Step, power inventory.PowerState) {
	power = inventory.PowerUnknown
	d, err := open(t)
	if err != nil {
		return []Step{{Name: "options", Err: err}}, power
	}
	defer func() { _ = d.Close() }()
	// The network comes first and needs no password: a fault of the network must not look like one of the login.
	where, hasWay := wayTo(t)
	if hasWay {
		if steps = where.reach(ctx, t); failed(steps) {
			return steps, power
		}
	}
	more, power := logIn(ctx, d, t.Driver)
	return append(steps, more...), power
}

func failed(steps []Step) bool { return len(steps) > 0 && steps[len(steps)-1].Err != nil }

// way is where a controller is on the network.
type way struct {
	network, host, port string
	isTLS               bool
}

// wayTo reads the address of a target; ok is false for drivers that have no address on the network, or more ways than one.
func wayTo(t bmc.Target) (w way, ok bool) {
	switch t.Driver {
	case inventory.Redfish, inventory.Webhook:
		u, err := url.Parse(t.Address)
		if err != nil || u.Hostname() == "" {
			return w, false
		}
		w = way{network: "tcp", host: u.Hostname(), port: u.Port(), isTLS: u.Scheme == "https"}
		if w.port == "" {
			w.port = map[bool]string{true: "443", false: "80"}[w.isTLS]
		}
		return w, true
	case inventory.IPMI:
		// An address without a port is no fault: 623 is the port of RMCP.
		host, port, err := net.SplitHostPort(t.Address)
		if err != nil {
			host, port = strings.Trim(t.Address, "[]"), t.Options["port"]
		}
		port = cmp.Or(port, "623")
		return way{network: "udp", host: host, port: port}, host != ""
	}
	return w, false
}

// reach looks the name up, connects and looks at the certificate.
func (w way) reach(ctx context.Context, t bmc.Target) (steps []Step) {
	ctx, cancel := context.WithTimeout(ctx, 3*connectFor)
	defer cancel()
	host := inventory.Clean(w.host, 200)
	// The name has a look-up of its own, so that a fault of DNS does not look like one of the network.
	if _, err := netip.ParseAddr(w.host); err != nil {
		found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", w.host)
		if err != nil {
			return []Step{{Name: "name", Err: problem("the name "+host+" is not known here", "look at the spelling, or give an address", err)}}
		}
		steps = append(steps, Step{Name: "name", Detail: fmt.Sprintf("%s is %s", host, found[0].Unmap())})
	}
	c, err := w.dial(ctx, t.Egress)
	if err != nil {
		if said := egress.Explain("this address may not be connected to", err); said != nil {
			return append(steps, Step{Name: "connect", Err: said})
		}
		return append(steps, Step{Name: "connect", Err: problem("nothing takes connections at "+host+" port "+w.port, "see its address, its cable and the firewalls between", err)})
	}
	defer c.Close()
	// A UDP socket connects to anything.
	if w.network == "udp" { // a connection of UDP says nothing: the login does
		return steps
	}
	steps = append(steps, Step{Name: "connect", Detail: host + " port " + w.port + " takes connections"})
	if !w.isTLS {
		return steps
	}
	return append(steps, w.secure(ctx, c, t))
}

// dial goes through the egress policy, which also judges what a name resolves to. A second look-up may give another address than
// the one that reach has shown.
func (w way) dial(ctx context.Context, policy *egress.Policy) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectFor)
	defer cancel()
	return policy.DialContext(ctx, w.network, net.JoinHostPort(w.host, w.port))
}

// secure looks at the certificate as the drivers do: a fingerprint names one, and without it an authority must have signed it.
func (w way) secure(ctx context.Context, c net.Conn, t bmc.Target) Step {
	// With a fingerprint the chain does not count; the comparison follows below. Without the check in the handshake, this code
	// sees the certificate and can show its fingerprint.
	conf := &tls.Config{ServerName: w.host, MinVersion: tls.VersionTLS12, InsecureSkipVerify: t.InsecureSkipVerify || t.Fingerprint != ""}
	client := tls.Client(c, conf)
	ctx, cancel := context.WithTimeout(ctx, connectFor)
	defer cancel()
	err := client.HandshakeContext(ctx)
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.As(err, &untrusted):
		shown := ""
		if len(untrusted.UnverifiedCertificates) > 0 {
			shown = printOf(untrusted.UnverifiedCertificates[0].Raw)
		}
		return Step{Name: "tls", Err: problem("nobody that this server trusts has signed its certificate", "compare its fingerprint with the one on the controller's own screen, and give it: "+shown, err)}
	case err != nil:
		return Step{Name: "tls", noTLS: true, Err: problem("it speaks no TLS there, or none that is safe", "try the address with http:// where the network is safe, or update the controller", err)}
	}
	certs := client.ConnectionState().PeerCertificates
	if len(certs) == 0 {
		return Step{Name: "tls", Err: problem("it has no certificate", "make one on the controller", errors.New("no certificate"))}
	}
	got := printOf(certs[0].Raw)
	if want := strings.ToLower(strings.ReplaceAll(t.Fingerprint, ":", "")); want != "" && strings.TrimPrefix(want, "sha256:") != got {
		return Step{Name: "tls", Err: problem("its certificate has another fingerprint", "if the controller got a new certificate, give its fingerprint: "+got, errors.New("fingerprint "+got))}
	}
	detail := "its certificate is trusted"
	switch {
	case t.Fingerprint != "":
		detail = "its certificate has the fingerprint that was given"
	case t.InsecureSkipVerify:
		detail = "any certificate is accepted; this one has the fingerprint " + got
	}
	return Step{Name: "tls", Detail: detail}
}

func printOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// problem is Unavailable: a trial never judges the stored controller, so that each of its failures may pass by itself.
func problem(msg, hint string, err error) error {
	return &inventory.Error{Kind: inventory.Unavailable, Msg: msg + ": " + inventory.Clean(reason(err), 200), Hint: hint, Err: err}
}

// reason is the part of an error that an admin can use.
func reason(err error) string {
	var op *net.OpError
	var dns *net.DNSError
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &op) && op.Timeout():
		return "it does not answer in time"
	case errors.As(err, &dns):
		return dns.Err
	// OpError repeats the network and both addresses, which the sentence around it names already.
	case errors.As(err, &op):
		return op.Err.Error()
	}
	return err.Error()
}

// logIn asks for the power state, which needs a login where there is one, and then whether the account is an administrator's.
func logIn(ctx context.Context, d bmc.Driver, driver inventory.BMCDriver) (steps []Step, power inventory.PowerState) {
	power, err := d.Power(ctx)
	switch {
	// Forbidden comes after the login: the account is right and its role is not.
	case err != nil && bmc.KindOf(err) == inventory.Forbidden:
		return []Step{{Name: "login", Detail: "the account is known"}, {Name: "rights", Err: err}}, inventory.PowerUnknown
	case err != nil:
		return []Step{{Name: "login", Err: err}}, inventory.PowerUnknown
	}
	switch driver {
	// These drivers have no account. Power above answered from memory or from the network, so no login was tested.
	case inventory.Manual, inventory.WoL:
		return []Step{{Name: "login", Detail: "there is nothing to log in to: nobody tells its power"}}, power
	}
	steps = []Step{{Name: "login", Detail: "lets us in; the power is " + string(power)}}
	// Reading the power state needs no administrator. An account without the right to change accounts shows up here, and not
	// months later when its password is to be rotated.
	if users, ok := d.(bmc.UserManager); ok {
		s := Step{Name: "rights", Detail: "the account is an administrator's"}
		if err := users.CheckCredentials(ctx); err != nil {
			s = Step{Name: "rights", Err: err}
		}
		steps = append(steps, s)
	}
	return steps, power
}

// Discreet removes what would show the network to a caller that chose the address: the address of the name, open ports,
// and protocols. Certificates, logins and rights stay, because they belong to a controller.
func Discreet(steps []Step) (out []Step) {
	for _, s := range steps {
		if s.Name != "name" && s.Name != "connect" && !s.noTLS {
			out = append(out, s)
			continue
		}
		var refused *egress.Refused
		switch {
		case errors.As(s.Err, &refused):
			out = append(out, s) // by our own rules, before any packet was sent
		case s.Err != nil:
			out = append(out, Step{Name: "connect", Err: problem("no controller answers at this address",
				"see its address, its cable and the firewalls between; an admin everywhere sees more", errors.New("no answer"))})
		}
	}
	return out
}
