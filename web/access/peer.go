package access

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"os/user"
	"strconv"
	"syscall"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe/door"
	"slipway.dev/slipway/web/rest"
)

// peerKey is where the connection's other end is kept in a request's context.
type peerKey struct{}

// RememberPeer notes the user at the other end of a Unix socket, and the connection's place at its listener.
func RememberPeer(ctx context.Context, c net.Conn) context.Context {
	ctx = door.Context(ctx, c)
	// The listener wraps its connections to count them. The kernel knows only the one inside.
	if placed, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = placed.NetConn()
	}
	if u, ok := c.(*net.UnixConn); ok {
		return context.WithValue(ctx, peerKey{}, peerOf(u))
	}
	return ctx
}

// LocalUser names the user at the other end of a Unix socket, "" if the kernel does not say.
func LocalUser(r *http.Request) string {
	name, _ := r.Context().Value(peerKey{}).(string)
	return name
}

// AdmitLocal lets every caller in: a user that can open the socket is an admin. User returns the name of the one who sent a request.
func AdmitLocal(user func(*http.Request) string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := cmp.Or(user(r), "somebody")
		door.Trust(r.Context())
		rest.EdgeOf(r.Context()).Caller = rest.Caller{Name: name + " (local)", IsLocal: true, Via: rest.ViaSocket, Grants: inventory.AdminEverywhere()}
		next.ServeHTTP(w, r)
	})
}

// peerOf names the user at the other end of a Unix socket, "" if the kernel does not say.
func peerOf(c *net.UnixConn) string {
	raw, err := c.SyscallConn()
	if err != nil {
		return ""
	}
	var cred *syscall.Ucred
	if raw.Control(func(fd uintptr) {
		// The kernel notes the user when the socket is connected. A process that changes its user later, or hands the socket on,
		// does not change that.
		cred, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}) != nil || err != nil {
		return ""
	}
	id := strconv.FormatUint(uint64(cred.Uid), 10)
	// A container may have no database of users. The number is then the best name.
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return "uid " + id
}
