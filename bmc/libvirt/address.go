package libvirt

import (
	"cmp"
	"net"
	"net/url"
	"strings"

	golibvirt "github.com/digitalocean/go-libvirt"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/egress"
)

// sockets are where a libvirt daemon on this machine listens: libvirtd, or virtqemud, which newer distributions have in its
// place.
var sockets = []string{"/run/libvirt/libvirt-sock", "/run/libvirt/virtqemud-sock"}

const addressHint = "use qemu:///system, qemu+unix:///system?socket=/path, unix:///path or qemu+tcp://host/system; for a daemon elsewhere, forward its socket with ssh -L"

// endpoint is where a daemon listens, and what it is asked for.
type endpoint struct {
	network   string
	addresses []string // the first that takes a connection is used
	uri       golibvirt.ConnectURI
	egress    *egress.Policy
}

// parseAddress reads a libvirt URI.
func parseAddress(s string) (endpoint, error) {
	s = cmp.Or(s, string(golibvirt.QEMUSystem))
	bad := func(why string) (endpoint, error) {
		return endpoint{}, inventory.Errorf(inventory.Invalid, "bmc: libvirt cannot use the address %q: %s", inventory.Clean(s, 80), why).WithHint(addressHint)
	}
	u, err := url.Parse(s)
	if err != nil {
		return endpoint{}, inventory.Errorf(inventory.Invalid, "bmc: the address is not a libvirt URI").WithHint(addressHint)
	}
	// There is nobody to log in as: the rights of the socket's file decide.
	if u.User != nil {
		return endpoint{}, inventory.Errorf(inventory.Invalid, "bmc: a libvirt address holds no user").WithHint(addressHint)
	}
	e := endpoint{network: "unix", addresses: sockets, uri: golibvirt.QEMUSystem}
	if u.Scheme == "unix" {
		if e.addresses = []string{u.Path}; !strings.HasPrefix(u.Path, "/") || u.Host != "" || u.RawQuery != "" {
			return bad("unix:// is followed by the path of a socket")
		}
		return e, nil
	}
	if u.Path != "/system" && u.Path != "/session" {
		return bad("it must end in /system or /session")
	}
	e.uri = golibvirt.ConnectURI("qemu://" + u.Path)
	// The other parameters of libvirt's client name files and programs on this machine, which a stored address must not
	// choose.
	query := u.Query()
	socket := query.Get("socket")
	query.Del("socket")
	if len(query) > 0 {
		return bad("it knows the parameter socket only")
	}
	switch {
	case u.Scheme == "qemu+tcp" && u.Hostname() != "" && socket == "":
		port := cmp.Or(u.Port(), "16509") // libvirtd's default for TCP without TLS
		e.network, e.addresses = "tcp", []string{net.JoinHostPort(u.Hostname(), port)}
		return e, nil
	case (u.Scheme == "qemu" || u.Scheme == "qemu+unix") && u.Host == "":
		if socket != "" {
			e.addresses = []string{socket}
		} else if u.Path == "/session" {
			return bad("a session's daemon needs its socket: qemu+unix:///session?socket=/run/user/1000/libvirt/libvirt-sock")
		}
		return e, nil
	}
	return bad("there is no such way to a daemon")
}
