package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os/user"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/time/rate"

	"slipway.dev/slipway/inventory"
)

// caller is who sent a request.
type caller struct {
	name    string // "token NAME", or "USER (local)"
	isLocal bool   // came through the Unix socket
}

type callerKey struct{}

// callerOf returns who sent the request that the context belongs to.
func callerOf(ctx context.Context) caller {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c
}

// by names the caller in the timeline.
func by(ctx context.Context) string { return callerOf(ctx).name }

// admitLocal lets everybody in: who could open the socket is an admin.
func admitLocal(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, _ := r.Context().Value(peerKey{}).(string)
		if name == "" {
			name = "somebody"
		}
		c := caller{name: name + " (local)", isLocal: true}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, c)))
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
		cred, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}) != nil || err != nil {
		return ""
	}
	id := strconv.FormatUint(uint64(cred.Uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return "uid " + id
}

// keeper lets in who brings a token, and slows down who tries others.
type keeper struct {
	store inventory.Store
	now   func() time.Time
	log   *slog.Logger

	mu       sync.Mutex
	failures map[netip.Addr]*rate.Limiter
}

const (
	failureEvery = time.Second // one failed try per source and second,
	failureBurst = 20          // and so many at once
	sourcesMax   = 4096        // sources remembered; when there are more, all are forgiven
	touchEvery   = time.Minute // how often a token's last use is written down
	secretMax    = 512         // longest token that is looked up
)

func newKeeper(store inventory.Store, now func() time.Time, log *slog.Logger) *keeper {
	return &keeper{store: store, now: now, log: log, failures: map[netip.Addr]*rate.Limiter{}}
}

// HashToken returns what a store keeps of a token's secret: its SHA-256 in hex. A secret has 256 random bits, so it
// needs no salt and no slow hash.
func HashToken(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// openPaths need no token: what a load balancer asks.
const openPath = "/healthz"

// guard passes on requests with a valid token.
func (k *keeper) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == openPath {
			next.ServeHTTP(w, r)
			return
		}
		t, err := k.admit(r)
		if err != nil {
			writeProblem(w, r, k.log, err)
			return
		}
		c := caller{name: "token " + t.Name}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, c)))
	})
}

var errTooManyTries = &statusError{status: http.StatusTooManyRequests, retryAfter: 2 * time.Second, err: &inventory.Error{
	Kind: inventory.Unavailable, Msg: "too many requests without a valid token from this address", Hint: "wait a few seconds",
}}

// admit finds the token that a request brings.
func (k *keeper) admit(r *http.Request) (inventory.Token, error) {
	tries := k.tries(sourceOf(r))
	if tries.TokensAt(k.now()) < 1 {
		return inventory.Token{}, errTooManyTries
	}
	t, err := k.find(r)
	var e *inventory.Error
	if errors.As(err, &e) && e.Kind == inventory.Unauthorized {
		tries.AllowN(k.now(), 1)
	}
	return t, err
}

func (k *keeper) find(r *http.Request) (t inventory.Token, err error) {
	const hint = "send it as: Authorization: Bearer SECRET; make one on the server with: slipway token create NAME"
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	secret = strings.TrimSpace(secret)
	if !strings.EqualFold(scheme, "Bearer") || secret == "" {
		return t, inventory.Errorf(inventory.Unauthorized, "this needs a token").WithHint(hint)
	}
	if len(secret) > secretMax {
		return t, inventory.Errorf(inventory.Unauthorized, "the token is not known here").WithHint(hint)
	}
	err = k.store.Read(r.Context(), func(tx inventory.Tx) error {
		t, err = tx.FindTokenByHash(HashToken(secret))
		return err
	})
	var e *inventory.Error
	switch {
	case errors.As(err, &e) && e.Kind == inventory.NotFound:
		return t, inventory.Errorf(inventory.Unauthorized, "the token is not known here").WithHint(hint)
	case err != nil:
		return t, err
	case !t.ExpiresAt.IsZero() && !k.now().Before(t.ExpiresAt):
		return t, inventory.Errorf(inventory.Unauthorized, "token %s has expired", t.Name).
			WithHint("make a new one on the server with: slipway token create NAME")
	}
	k.touch(r.Context(), t)
	return t, nil
}

// touch notes that a token was used. A failure delays the note and nothing else.
func (k *keeper) touch(ctx context.Context, t inventory.Token) {
	now := k.now()
	if now.Sub(t.LastUsedAt) < touchEvery {
		return
	}
	if err := k.store.Write(ctx, func(tx inventory.Tx) error { return tx.TouchToken(t.Name, now) }); err != nil {
		k.log.Debug("use of a token not noted", "err", err)
	}
}

// tries returns the limiter for failed tries of a source. An IPv6 network counts as one.
func (k *keeper) tries(source netip.Addr) *rate.Limiter {
	if source.Is6() {
		if p, err := source.Prefix(64); err == nil {
			source = p.Addr()
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.failures[source]
	if l == nil {
		if len(k.failures) >= sourcesMax {
			clear(k.failures)
		}
		l = rate.NewLimiter(rate.Every(failureEvery), failureBurst)
		k.failures[source] = l
	}
	return l
}
