package invite

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"slipway.dev/slipway/cmd/slipway/serve/peer"
	"slipway.dev/slipway/inventory"
)

// mostAddresses bounds what a new machine tries, each for some seconds.
const mostAddresses = 32

var portText = strconv.Itoa(peer.Port)

// ParseAddresses reads addresses as Invitations name them: an address of IP or a name, with a port or without, separated by commas.
func ParseAddresses(text string) (all []string, err error) {
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		host, port, err := net.SplitHostPort(part)
		if err != nil {
			host, port = strings.Trim(part, "[]"), portText
		}
		_, notIP := netip.ParseAddr(host)
		n, notPort := net.LookupPort("tcp", port)
		if notIP != nil && (host == "" || strings.ContainsAny(host, ":/ @?#%[]")) || notPort != nil || n == 0 {
			return nil, inventory.Errorf(inventory.Invalid, "%q is no address of an instance", inventory.Clean(part, 80)).
				WithHint("write it as 192.0.2.11:%s, several with commas between them", portText)
		}
		all = append(all, net.JoinHostPort(host, port))
	}
	if len(all) > mostAddresses {
		return nil, inventory.Errorf(inventory.Invalid, "there are %d addresses, and at most %d can be tried", len(all), mostAddresses).
			WithHint("name one or two of them")
	}
	return all, nil
}

// Ask shows a code to instances at some addresses, one after the other, and returns what the first that decides hands over, and its
// address. An instance that refuses has decided. An address where somebody else answers gets nothing: the code is not sent there.
func Ask(ctx context.Context, addresses []string, code Code, r Request) (h HandOver, at string, err error) {
	guest, err := peer.NewGuest(code.Pin())
	if err != nil {
		return h, "", err
	}
	defer guest.CloseIdleConnections()
	r.ID, r.Secret = code.ID(), code.secret[:]
	var failed, strange []string
	hint := "is the address right, does Slipway run there, and is TCP port " + portText + " open between the two machines?"
	for _, at := range addresses {
		h, err = peer.Call[HandOver](ctx, guest, "https://"+at+pathJoin, r)
		switch {
		case err == nil:
			return h, at, nil
		case ctx.Err() != nil:
			return h, "", ctx.Err()
		case peer.IsStranger(err):
			strange = append(strange, at)
		case !inventory.IsKind(err, inventory.Unavailable):
			return h, at, err
		default:
			text, fromInstance := why(err)
			failed = append(failed, at+": "+text)
			if fromInstance {
				hint = inventory.HintOf(err)
			}
		}
	}
	if len(strange) > 0 {
		return h, "", inventory.Errorf(inventory.Conflict,
			"who answers at %s is not an instance that this code is of: its key is another. "+
				"Nothing was sent there", strings.Join(strange, " and at ")).
			WithHint("is it the right address? If it is, somebody may be between the two machines, or secret.key was replaced after " +
				"the code was made." +
				" slipway instance invite makes another")
	}
	return h, "", inventory.Errorf(inventory.Unavailable,
		"no instance lets this machine in: %s", strings.Join(failed, "; ")).WithHint("%s", hint)
}

// why says in a few words why a call failed. fromInstance says that an instance has said so.
func why(err error) (text string, fromInstance bool) {
	if said, ok := errors.AsType[*inventory.Error](err); ok && said.Err == nil {
		return inventory.Clean(said.Msg, 200), true
	}
	return inventory.Clean(peer.Reason(err), 200), false
}
