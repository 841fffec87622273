// Package egress owns which addresses Slipway connects to on behalf of others. Imports, webhooks, controllers, scans, the
// identity provider and clusters all dial through its Policy. It never decides about rights of callers.
//
// Start reading at Policy.Check, then Policy.Control. The policy checks an address when the connection is made, after DNS
// and for every redirect. No name can therefore lead elsewhere between check and connection.
package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"slipway.dev/slipway/inventory"
)

// Config says what a Policy lets through besides what it lets through anyway.
type Config struct {
	// Allow opens networks that are refused otherwise, such as 127.0.0.0/8. Sockets of this machine count as 127.0.0.1.
	Allow []netip.Prefix
	// Own returns the addresses of this machine; nil reads those of its interfaces.
	Own func() []netip.Addr
	// Doors returns the ports of the appliance's own doors, which no allow list opens; nil for none.
	Doors func() []uint16
}

// Policy decides which addresses may be connected to. It never changes, and may be used from many goroutines. A nil
// Policy guards nothing: it is for programs of a person, who connects as themselves.
type Policy struct {
	cfg Config
	may func() error // of Guarded; nil: it always may
}

// New makes a Policy.
func New(cfg Config) *Policy {
	if cfg.Own == nil {
		cfg.Own = interfaceAddrs
	}
	if cfg.Doors == nil {
		cfg.Doors = func() []uint16 { return nil }
	}
	return &Policy{cfg: cfg}
}

// ParseAllow reads the networks of an allow list: 10.0.0.0/8, fd00::/8, or one address.
func ParseAllow(texts []string) (list []netip.Prefix, err error) {
	for _, s := range texts {
		p, err := netip.ParsePrefix(s)
		if a, errAddr := netip.ParseAddr(s); errAddr == nil && a.Zone() == "" {
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err != nil || p.Addr().Is4In6() {
			return nil, inventory.Errorf(inventory.Invalid, "%q is no network", inventory.Clean(s, 60)).
				WithHint("write the networks that may be connected to as 127.0.0.0/8, fd00::/64 or 10.0.0.5")
		}
		list = append(list, p.Masked())
	}
	return list, nil
}

// Refused is the cause of a connection that the policy does not allow. Its text is for admins.
type Refused struct {
	Host string // an address, a name or a path
	Why  string
}

// Error names the address and the rule.
func (e *Refused) Error() string {
	return fmt.Sprintf("the egress policy refuses %s: %s", inventory.Clean(e.Host, 200), e.Why)
}

// AllowHint says to an admin how to open an address.
const AllowHint = "to allow it, add its network to egress: allow: in the server's configuration, or start the server with --egress-allow"

// Explain returns the error for an admin when err is a refusal of the policy, nil otherwise. what begins its message.
func Explain(what string, err error) error {
	var r *Refused
	if !errors.As(err, &r) {
		return nil
	}
	return &inventory.Error{Kind: inventory.Invalid, Msg: what + ": " + r.Error(), Hint: AllowHint, Err: err}
}

// Check refuses an address that must not be connected to, with a *Refused.
func (p *Policy) Check(at netip.AddrPort) error {
	if p == nil {
		return nil
	}
	if why := p.refuses(at.Addr(), at.Port()); why != "" {
		return &Refused{Host: at.String(), Why: why}
	}
	return nil
}

// CheckSocket refuses a socket of this machine, unless 127.0.0.1 is allowed.
func (p *Policy) CheckSocket(path string) error {
	if p == nil || p.isAllowed(netip.AddrFrom4([4]byte{127, 0, 0, 1})) {
		return nil
	}
	return &Refused{Host: path, Why: "it is a socket of this machine, which counts as 127.0.0.1"}
}

// refuses returns why an address must not be connected to, "" when it may be.
func (p *Policy) refuses(a netip.Addr, port uint16) string {
	a = a.Unmap().WithZone("")
	isOwn := a.IsLoopback() || slices.Contains(p.cfg.Own(), a)
	if (isOwn || a.IsUnspecified()) && port != 0 && slices.Contains(p.cfg.Doors(), port) {
		return "it is a listener of the appliance itself"
	}
	if p.isAllowed(a) {
		return ""
	}
	if why := special(a); why != "" {
		return why
	}
	if isOwn {
		return "it is an address of this machine"
	}
	for _, inner := range embedded(a) {
		if why := p.refuses(inner, port); why != "" {
			return fmt.Sprintf("it leads to %s, and %s", inner, why)
		}
	}
	return ""
}

func (p *Policy) isAllowed(a netip.Addr) bool {
	return slices.ContainsFunc(p.cfg.Allow, func(n netip.Prefix) bool { return n.Contains(a) })
}

// Control is the Control of a net.Dialer: it sees the address that is about to be connected to.
func (p *Policy) Control(network, address string, _ syscall.RawConn) error {
	if p == nil {
		return nil
	}
	if err := p.MaySend(); err != nil {
		return err
	}
	if strings.HasPrefix(network, "unix") {
		return p.CheckSocket(address)
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return &Refused{Host: address, Why: "it is no address"}
	}
	return p.Check(at)
}

// Dialer returns a dialer whose connections the policy allows; timeout 0 is none.
func (p *Policy) Dialer(timeout time.Duration) *net.Dialer {
	return &net.Dialer{Timeout: timeout, KeepAlive: 30 * time.Second, Control: p.Control}
}

// DialContext connects as Dialer does, in at most 10 s.
func (p *Policy) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return p.guard(p.Dialer(10*time.Second).DialContext(ctx, network, address))
}

// Guarded returns the same policy, over whose connections nothing is sent while may returns an error. Each write asks it. After the write
// before, the process may have been paused for some time, and another server does the work now.
func (p *Policy) Guarded(may func() error) *Policy {
	g := *p
	g.may = may
	return &g
}

// MaySend is what Guarded was given, for packets that are sent without a connection of the policy.
func (p *Policy) MaySend() error {
	if p == nil || p.may == nil {
		return nil
	}
	return p.may()
}

// Dial connects as DialContext does, without a limit of time of its own.
func (p *Policy) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return p.guard(p.Dialer(0).DialContext(ctx, network, address))
}

func (p *Policy) guard(c net.Conn, err error) (net.Conn, error) {
	if err != nil || p == nil || p.may == nil {
		return c, err
	}
	return guarded{c, p.may}, nil
}

// DialCluster connects as DialContext does, and to the proxies of the environment wherever they are: the libraries of
// Kubernetes choose between the two themselves. It is for addresses that admins name.
func (p *Policy) DialCluster(ctx context.Context, network, address string) (net.Conn, error) {
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"} {
		if isProxy(os.Getenv(name), address) {
			return (*Policy)(nil).DialContext(ctx, network, address)
		}
	}
	return p.DialContext(ctx, network, address)
}

// isProxy reports whether a setting of the environment names the proxy at an address.
func isProxy(setting, address string) bool {
	if setting != "" && !strings.Contains(setting, "://") {
		setting = "http://" + setting
	}
	u, err := url.Parse(setting)
	if err != nil || u.Host == "" {
		return false
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443", "socks5": "1080"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port) == address
}

// interfaceAddrs are the addresses of this machine as they are now.
func interfaceAddrs() (own []netip.Addr) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil // without them the other rules still hold
	}
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok {
			if addr, ok := netip.AddrFromSlice(n.IP); ok {
				own = append(own, addr.Unmap().WithZone(""))
			}
		}
	}
	return own
}
