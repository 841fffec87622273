package access

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/weak"
)

// Cost of hashing a password (RFC 9106 section 4: with this much memory few passes are enough), and the bounds of what
// is read back: a row of the database must not make a login eat the machine.
const (
	hashMemoryKiB = 64 << 10
	hashTime      = 2
	hashBytes     = 32
	saltBytes     = 16

	hashMemoryMaxKiB = 256 << 10
	hashTimeMax      = 10
	hashThreadsMax   = 16
	hashBytesMax     = 64

	hashersQueue = 16 // hashes that wait for their turn,
	hashersEach  = 4  // and those of one source, at work or waiting: one cannot keep the others from logging in

	passwordMin = 10
	passwordMax = 256
)

// phc is a password's hash in the form of the Password Hashing Competition: $argon2id$v=19$m=65536,t=2,p=1$SALT$HASH.
type phc struct {
	memoryKiB, time uint32
	threads         uint8
	salt, hash      []byte
}

func (p phc) String() string {
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, p.memoryKiB, p.time, p.threads,
		b64.EncodeToString(p.salt), b64.EncodeToString(p.hash))
}

// parsePHC reads what String wrote, and hashes of other programs within the bounds above.
func parsePHC(text string) (p phc, err error) {
	bad := func(what string) (phc, error) { return phc{}, fmt.Errorf("stored password: %s", what) }
	// The bound comes first: a row of a changed backup may be as long as anybody likes.
	if len(text) > 512 {
		return bad("it is too long")
	}
	parts := strings.Split(text, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" {
		return bad("it is no argon2id hash")
	}
	if parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return bad("it is of another version of argon2")
	}
	// The semicolon ends the last number. Without it Sscanf would accept any text behind that.
	if n, err := fmt.Sscanf(parts[3]+";", "m=%d,t=%d,p=%d;", &p.memoryKiB, &p.time, &p.threads); n != 3 || err != nil {
		return bad("its cost cannot be read")
	}
	// RFC 9106 section 3.1 asks for at least 8 KiB of memory for each thread.
	if p.threads < 1 || p.threads > hashThreadsMax || p.time < 1 || p.time > hashTimeMax ||
		p.memoryKiB < 8*uint32(p.threads) || p.memoryKiB > hashMemoryMaxKiB {
		return bad("its cost is out of bounds")
	}
	for _, f := range []struct {
		text  string
		bytes *[]byte
	}{{parts[4], &p.salt}, {parts[5], &p.hash}} {
		if *f.bytes, err = base64.RawStdEncoding.Strict().DecodeString(f.text); err != nil || len(*f.bytes) < 8 || len(*f.bytes) > hashBytesMax {
			return bad("its salt or hash cannot be read")
		}
	}
	return p, nil
}

// derive takes some 100 ms and p.memoryKiB of memory; callers hold a turn.
func (p phc) derive(password string) []byte {
	return argon2.IDKey([]byte(password), p.salt, p.time, p.memoryKiB, p.threads, uint32(len(p.hash)))
}

// hashers hashes passwords, a few at once: each takes 64 MiB, so that without a bound logins could eat the memory.
type hashers struct {
	turns chan struct{}
	queue chan struct{}

	mu sync.Mutex
	of map[netip.Addr]int // at work or waiting, by source
	// decoy is what the password of nobody is compared with, so that an unknown user takes as long as a known one.
	decoy phc
}

// hashersMax is how many hashes of strangers run at once: a flood of logins leaves at least half of the processors to the other doors.
func hashersMax() int { return min(max(runtime.GOMAXPROCS(0)/2, 1), 4) }

// newHashers returns what runs n hashes at once.
func newHashers(n int) *hashers {
	h := &hashers{turns: make(chan struct{}, n), queue: make(chan struct{}, hashersQueue+n), of: map[netip.Addr]int{}}
	h.decoy = phc{memoryKiB: hashMemoryKiB, time: hashTime, threads: 1, salt: make([]byte, saltBytes), hash: make([]byte, hashBytes)}
	_, _ = rand.Read(h.decoy.salt) // never fails
	_, _ = rand.Read(h.decoy.hash)
	return h
}

// turn waits for a turn; the caller gives it back.
func (h *hashers) turn(req *rest.Request) (back func(), err error) {
	// The bound for one address comes first. Otherwise that address could fill the queue of all.
	leave, ok := h.enter(rest.SourceKey(req.Caller.Source))
	if !ok {
		return nil, tooManyLogins()
	}
	select {
	// A full queue refuses at once. A longer one would only make people wait who give up and try again.
	case h.queue <- struct{}{}:
	default:
		leave()
		return nil, tooManyLogins()
	}
	// The place in the queue is given back only after the hash: the size of the queue counts waiting and working callers.
	select {
	case h.turns <- struct{}{}:
		return func() { <-h.turns; <-h.queue; leave() }, nil
	case <-req.Done():
		<-h.queue
		leave()
		return nil, req.Err()
	}
}

func tooManyLogins() error {
	return inventory.Errorf(inventory.Unavailable, "too many logins at once").WithHint("try it again in a moment")
}

// enter counts a hash for its source; those who come through the Unix socket have none, and are not counted.
func (h *hashers) enter(source netip.Addr) (leave func(), ok bool) {
	if !source.IsValid() {
		return func() {}, true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of[source] >= hashersEach {
		return nil, false
	}
	h.of[source]++
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		// A source without a hash has no entry, so the map is never larger than the queue.
		if h.of[source]--; h.of[source] == 0 {
			delete(h.of, source)
		}
	}, true
}

// hash makes the PHC string of a new password.
func (h *hashers) hash(req *rest.Request, password string) (string, error) {
	back, err := h.turn(req)
	if err != nil {
		return "", err
	}
	defer back()
	p := phc{memoryKiB: hashMemoryKiB, time: hashTime, threads: 1, salt: make([]byte, saltBytes), hash: make([]byte, hashBytes)}
	_, _ = rand.Read(p.salt) // never fails
	p.hash = p.derive(password)
	return p.String(), nil
}

// matches compares a password with a stored hash. "" matches nothing, and takes as long as any other.
func (h *hashers) matches(req *rest.Request, stored, password string) (bool, error) {
	p, isReal := h.decoy, false
	if stored != "" {
		var err error
		if p, err = parsePHC(stored); err != nil {
			return false, err
		}
		isReal = true
	}
	// The work is done nevertheless, so that the length of what somebody sends shows nothing.
	if len(password) > passwordMax {
		password, isReal = password[:passwordMax], false
	}
	back, err := h.turn(req)
	if err != nil {
		return false, err
	}
	defer back()
	// The hash is computed in every case. The time shows neither whether the user exists nor how much of the password is right.
	return subtle.ConstantTimeCompare(p.derive(password), p.hash) == 1 && isReal, nil
}

// checkPassword refuses what is no password for a user, or one of the first that anybody would try.
func checkPassword(user inventory.User, password string) error {
	invalid := func(format string, args ...any) error {
		return inventory.Errorf(inventory.Invalid, format, args...).WithHint("a few words in a row that do not belong together are easy to remember and hard to guess")
	}
	// The least length is in characters, because people count those. The greatest is in bytes, because hashing has to read them.
	switch {
	case !utf8.ValidString(password) || strings.ContainsRune(password, 0):
		return invalid("the password is not text")
	case utf8.RuneCountInString(password) < passwordMin:
		return invalid("the password has fewer than %d characters", passwordMin)
	case len(password) > passwordMax:
		return invalid("the password is longer than %d bytes", passwordMax)
	}
	if why := weak.Reason(password, user.Name, user.DisplayName); why != "" {
		return invalid("the password is too easy to guess: %s", why)
	}
	return nil
}
