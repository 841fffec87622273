package access

import (
	"context"
	"encoding/hex"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
)

// The hash is the one that the reference implementation gives: echo -n password | argon2 somesalt -id -t 2 -k 65536 -p 1 -l 32.
func TestAHashOfTheReferenceImplementationIsKnown(t *testing.T) {
	p := phc{memoryKiB: 65536, time: 2, threads: 1, salt: []byte("somesalt"), hash: make([]byte, 32)}
	if got := hex.EncodeToString(p.derive("password")); got != "09316115d5cf24ed5a15a31a3ba326e5cf32edc24702987c02b6566f61913cf7" {
		t.Errorf("got %s", got)
	}
	h := newHashers(hashersMax())
	ok, err := h.matches(rest.NewRequest(t.Context(), ""), "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc", "password")
	if !ok || err != nil {
		t.Errorf("a PHC string of the reference implementation: %v, %v", ok, err)
	}
}

func TestAPasswordMatchesItsHashOnly(t *testing.T) {
	h := newHashers(hashersMax())
	stored, err := h.hash(rest.NewRequest(t.Context(), ""), "correct horse")
	if err != nil || !strings.HasPrefix(stored, "$argon2id$v=19$m=65536,t=2,p=1$") {
		t.Fatalf("%q, %v", stored, err)
	}
	if other, _ := h.hash(rest.NewRequest(t.Context(), ""), "correct horse"); other == stored {
		t.Error("two hashes of one password are the same: there is no salt")
	}
	for password, want := range map[string]bool{"correct horse": true, "correct horsf": false, "": false, "Correct horse": false} {
		if got, err := h.matches(rest.NewRequest(t.Context(), ""), stored, password); got != want || err != nil {
			t.Errorf("%q: %v, %v", password, got, err)
		}
	}
	if got, err := h.matches(rest.NewRequest(t.Context(), ""), "", ""); got || err != nil {
		t.Errorf("no hash: %v, %v", got, err)
	}
}

func TestHashesWaitForTheirTurn(t *testing.T) {
	h := newHashers(hashersMax())
	var wg sync.WaitGroup
	var refused, turns atomic.Int32
	ctx, cancel := context.WithCancel(t.Context())
	req := rest.NewRequest(ctx, "")
	for range hashersMax() {
		back, err := h.turn(req)
		if err != nil {
			t.Fatal(err)
		}
		defer back()
	}
	for range hashersQueue + 5 {
		wg.Go(func() {
			back, err := h.turn(req)
			switch {
			case inventory.IsKind(err, inventory.Unavailable):
				refused.Add(1)
			case err == nil:
				turns.Add(1)
				back()
			}
		})
	}
	for deadline := time.Now().Add(time.Minute); refused.Load() < 5 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	cancel()
	wg.Wait()
	if refused.Load() != 5 || turns.Load() != 0 {
		t.Errorf("%d refused, %d had a turn beside %d others", refused.Load(), turns.Load(), hashersMax())
	}
}

func TestOneSourceDoesNotKeepOthersFromLoggingIn(t *testing.T) {
	h := newHashers(hashersMax())
	from := func(a string) *rest.Request {
		return &rest.Request{Context: t.Context(), Caller: rest.Caller{Source: netip.MustParseAddr(a)}}
	}
	var backs []func()
	ctx, cancel := context.WithCancel(t.Context())
	flood := from("10.0.0.1").With(ctx)
	var wg sync.WaitGroup
	for range hashersMax() {
		back, err := h.turn(flood)
		if err != nil {
			t.Fatal(err)
		}
		backs = append(backs, back)
	}
	var refused atomic.Int32
	for range 2 * hashersQueue {
		wg.Go(func() {
			if _, err := h.turn(flood); inventory.IsKind(err, inventory.Unavailable) {
				refused.Add(1)
			}
		})
	}
	for deadline := time.Now().Add(time.Minute); int(refused.Load()) < 2*hashersQueue-(hashersEach-hashersMax()) && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	cancel()
	wg.Wait()
	for _, back := range backs {
		back()
	}
	back, err := h.turn(from("10.0.0.2"))
	if err != nil {
		t.Fatal(err)
	}
	back()
	if len(h.of) != 0 {
		t.Errorf("%v are still counted", h.of)
	}
	if want := 2*hashersQueue - (hashersEach - hashersMax()); int(refused.Load()) != want {
		t.Errorf("%d of the flood refused, want %d", refused.Load(), want)
	}
}

func FuzzPHC(f *testing.F) {
	for _, s := range []string{
		"", "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc", "$argon2i$v=19$m=8,t=1,p=1$AAAAAAAAAAA$AAAAAAAAAAA",
		"$argon2id$v=19$m=4294967295,t=2,p=1$c29tZXNhbHQ$AAAAAAAAAAA", "$argon2id$v=19$m=8,t=1,p=1,x$c29tZXNhbHQ$AAAAAAAAAAA", "$argon2id$v=16$m=8,t=1,p=1$$",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := parsePHC(s)
		if err != nil {
			return
		}
		if p.memoryKiB > hashMemoryMaxKiB || p.time > hashTimeMax || p.time < 1 || p.threads < 1 || p.threads > hashThreadsMax || len(p.hash) < 8 || len(p.salt) < 8 {
			t.Fatalf("out of bounds: %+v", p)
		}
		again, err := parsePHC(p.String())
		if err != nil || again.String() != p.String() {
			t.Fatalf("%q reads back as %q: %v", p, again, err)
		}
	})
}
