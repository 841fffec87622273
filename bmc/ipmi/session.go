package ipmi

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/egress"
	"slipway.dev/slipway/inventory/sleep"
)

// Privilege levels (IPMI 2.0, 6.8).
const (
	levelUser          = 2
	levelOperator      = 3
	levelAdministrator = 4
)

// link is a UDP socket to one controller. One goroutine at a time uses it.
type link struct {
	conn net.Conn
	wait time.Duration // for an answer, before the question is sent again
	buf  [maxPacket]byte
}

// errSilent says that the controller did not answer.
var errSilent = errors.New("no answer")

// ask sends what build returns until accept takes an answer, at most tries times and not longer than ctx. It builds
// each sending again, because a controller drops a packet whose session sequence number it has seen.
//
// It ignores packets that accept refuses, and waits on. Anybody can send to a UDP port, and must not be able to end a
// question.
func (l *link) ask(ctx context.Context, tries int, build func() []byte, accept func([]byte) bool) error {
	// A deadline in the past wakes the read below at once.
	stop := context.AfterFunc(ctx, func() { l.conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	for try := range tries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := l.conn.Write(build()); err != nil {
			return err
		}
		// Each wait is half a wait longer than the one before: a controller that needs longer gets the time, a lost
		// packet costs little.
		l.conn.SetReadDeadline(time.Now().Add(l.wait + l.wait/2*time.Duration(try)))
		if ctx.Err() != nil { // the deadline just set would have undone the one of AfterFunc
			return ctx.Err()
		}
		for {
			n, err := l.conn.Read(l.buf[:])
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if err != nil {
				return err
			}
			if accept(l.buf[:n]) {
				return nil
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return errSilent
}

// login is what opens a session.
type login struct {
	address        string // host:port
	egress         *egress.Policy
	user, password string
	level          byte
	ciphers        []int         // in order of preference
	wait           time.Duration // for one answer
	tries          int           // of one question
}

// String keeps the password out of whatever is printed.
func (l login) String() string { return l.user + "@" + l.address }

// GoString does the same for %#v.
func (l login) GoString() string { return l.String() }

// session is an authenticated and encrypted conversation with a controller. remote goes into the packets that we
// send, local into those that we accept. seq counts packets, and rqSeq, of six bits, counts questions.
type session struct {
	link
	keys
	local, remote uint32 // ids
	seq           uint32
	rqSeq         byte
	tries         int
	tag           byte // of the message of the handshake that was sent last
}

// statusError is a refusal during the handshake (IPMI 2.0, table 13-15).
type statusError byte

func (e statusError) Error() string {
	if s, ok := statuses[byte(e)]; ok {
		return s
	}
	return "a status that IPMI does not define"
}

// open makes a session. It begins with the cipher suite that the controller took last. It tries the next suite only
// when the controller does not know this one, and never tries a wrong password twice, because controllers lock
// accounts.
//
// A refusal may come from a controller that is busy or starting. So open asks everything once more before it counts.
func (l login) open(ctx context.Context) (*session, error) {
	order, hasWorked := taken.order(l.address, l.ciphers)
	var err error
	for round := range 2 {
		if round > 0 && sleep.For(ctx, l.wait) != nil {
			break
		}
		for _, id := range order {
			var s *session
			if s, err = l.enter(ctx, suites[id]); err == nil {
				taken.note(l.address, id)
				return s, nil
			}
			if !isCipherRefusal(err) {
				break
			}
		}
		if !isCipherRefusal(err) && !errors.Is(err, errDisturbed) {
			break
		}
	}
	// The suite worked before, so that "turn it on" would send the admin in the wrong direction.
	if hasWorked && isCipherRefusal(err) {
		return nil, &inventory.Error{
			Kind: inventory.Unavailable, Err: err, Msg: "the IPMI controller at " + l.address + " refuses the cipher suite that it took before: " + err.Error(),
			Hint: "it may be busy or starting; if it stays so, turn on cipher suite 17 or 3 in the controller's settings",
		}
	}
	return nil, l.explain(err)
}

// enter opens a session with one cipher suite, on a socket of its own. A late answer about another suite or session
// can then never arrive here.
func (l login) enter(ctx context.Context, su suite) (*session, error) {
	conn, err := l.egress.Dial(ctx, "udp", l.address)
	if err != nil {
		return nil, err
	}
	s := &session{link: link{conn: conn, wait: l.wait}, tries: l.tries}
	if err := s.shake(ctx, l, su); err != nil {
		conn.Close()
		return nil, err
	}
	if err := s.raise(ctx, l.level); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// isCipherRefusal reports whether another cipher suite may do: no such algorithm, or no such combination.
func isCipherRefusal(err error) bool {
	var status statusError
	return errors.As(err, &status) && slices.Contains([]byte{0x04, 0x05, 0x06, 0x07, 0x10, 0x11, 0x12}, byte(status))
}

// errDisturbed says that a message of the handshake was sent more than once and then refused: the controller may have taken
// the first, and its answer was lost.
var errDisturbed = errors.New("the handshake was disturbed")

// errPassword says that the controller computed another code than we did.
var errPassword = errors.New("the controller knows another password")

// shake runs Open Session and RAKP messages 1 to 4 (IPMI 2.0, 13.17 to 13.24). Afterwards both sides know that the
// other one has the password, without having sent it, and share the session integrity key (SIK).
//
// The driver uses one-key logins: the user's password also takes the place of the controller's key K_G (13.31).
//
// Message 2 gives a code made with the password to anybody who knows a user name (CVE-2013-4786). No client can
// prevent that. It takes a long password, and a network that only admins reach.
func (s *session) shake(ctx context.Context, l login, su suite) error {
	var random [4 + 16 + 1]byte
	rand.Read(random[:])
	s.tag = random[len(random)-1]
	s.local = binary.LittleEndian.Uint32(random[:]) | 1 // never 0
	ours := random[4:20]

	open := binary.LittleEndian.AppendUint32([]byte{0, 0, 0, 0}, s.local)
	open = append(open, 0, 0, 0, 8, su.auth, 0, 0, 0, 1, 0, 0, 8, su.integrity, 0, 0, 0, 2, 0, 0, 8, 1, 0, 0, 0)
	got, err := s.step(ctx, payloadOpenRequest, payloadOpenResponse, open, 36)
	if err != nil {
		return err
	}
	// A machine between both could otherwise negotiate the protection away.
	if got[16] != su.auth || got[24] != su.integrity || got[32] != 1 {
		return statusError(0x11) // it chose weaker algorithms than it was offered
	}
	// Copies from here on: step returns its own slice, but the ids go into several later codes.
	s.remote = binary.LittleEndian.Uint32(got[8:])
	remoteID, localID := slices.Clone(got[8:12]), open[4:8]

	// The bit 0x10 asks for the user by name alone, not by name and level.
	who := append([]byte{l.level | 0x10, byte(len(l.user))}, l.user...)
	rakp1 := slices.Concat([]byte{0, 0, 0, 0}, remoteID, ours, []byte{l.level | 0x10, 0, 0, byte(len(l.user))}, []byte(l.user))
	hashN := su.newHash().Size()
	if got, err = s.step(ctx, payloadRAKP1, payloadRAKP2, rakp1, 40+hashN); err != nil {
		return err
	}
	theirs, guid := slices.Clone(got[8:24]), slices.Clone(got[24:40])
	// The key is always 20 bytes long, and a shorter password is filled up with zeros.
	secret := make([]byte, 20)
	copy(secret, l.password)
	if !hmac.Equal(got[40:40+hashN], su.mac(secret, localID, remoteID, ours, theirs, guid, who)) {
		// Message 3 with a status tells the controller that it may forget the session.
		s.tag++
		s.conn.Write(plain(payloadRAKP3, slices.Concat([]byte{s.tag, 0x0f, 0, 0}, remoteID)))
		return errPassword
	}

	rakp3 := slices.Concat([]byte{0, 0, 0, 0}, remoteID, su.mac(secret, theirs, localID, who))
	if got, err = s.step(ctx, payloadRAKP3, payloadRAKP4, rakp3, 8+su.codeN); err != nil {
		return err
	}
	sik := su.mac(secret, ours, theirs, who)
	if !hmac.Equal(got[8:8+su.codeN], su.mac(sik, ours, remoteID, guid)[:su.codeN]) {
		return errPassword
	}
	s.keys = newKeys(su, sik)
	return nil
}

// step sends one message of the handshake and returns the body of its answer, which has at least n bytes. The first
// byte of the message is its tag, which the answer repeats. An answer with another tag belongs to another message.
//
// A refusal is a statusError. It is errDisturbed when the message went out twice and the controller no longer knows
// the session. The controller may have taken the first one, and its answer was lost.
func (s *session) step(ctx context.Context, ask, answer byte, body []byte, n int) ([]byte, error) {
	s.tag++
	body[0] = s.tag
	var got []byte
	sentN := 0
	build := func() []byte {
		sentN++
		return plain(ask, body)
	}
	err := s.ask(ctx, s.tries, build, func(b []byte) bool {
		p, err := parsePacket(b, 0)
		if err != nil || p.payload != answer || p.encrypted || len(p.body) < 2 || p.body[0] != s.tag {
			return false
		}
		if isRefusal := p.body[1] != 0; !isRefusal && len(p.body) < n {
			return false
		}
		// Quirk short-refusal: a refusal may end before the id of the session.
		if len(p.body) >= 8 && binary.LittleEndian.Uint32(p.body[4:]) != s.local {
			return false
		}
		got = slices.Clone(p.body)
		return true
	})
	if err != nil {
		return nil, err
	}
	if got[1] == 0 {
		return got, nil
	}
	refused := statusError(got[1])
	if sentN > 1 && slices.Contains([]statusError{0x02, 0x08, 0x0f}, refused) {
		return nil, fmt.Errorf("%w: %w", errDisturbed, refused)
	}
	return nil, refused
}

// raise takes the privileges that the login asked for. A session starts with those of a user, which cannot switch
// power.
func (s *session) raise(ctx context.Context, level byte) error {
	const noSuchLevel, aboveLimit = 0x80, 0x81
	_, err := s.call(ctx, s.tries, netApp, cmdSetLevel, level)
	for n := 0; n < 3 && isBusy(err) && sleep.For(ctx, s.wait/2) == nil; n++ {
		_, err = s.call(ctx, s.tries, netApp, cmdSetLevel, level)
	}
	if slices.Contains([]byte{noSuchLevel, aboveLimit, codeNotPermitted, codeField}, codeOf(err)) {
		return statusError(0x0a)
	}
	return err
}

// call asks one question of the controller. An answer with a completion code other than 0 is a codeError. All
// sendings of a question have one rqSeq, so that a late answer to the first sending counts.
func (s *session) call(ctx context.Context, tries int, netFn, cmd byte, data ...byte) ([]byte, error) {
	s.rqSeq = (s.rqSeq + 1) & 0x3f
	var (
		code byte
		got  []byte
		m    = request(netFn, cmd, s.rqSeq, data)
	)
	err := s.ask(ctx, tries, func() []byte { return s.next(payloadIPMI, m) }, func(b []byte) bool {
		// Nothing is believed before its integrity code is checked, the completion code included.
		payload, body, err := s.open(b, s.local)
		if err != nil || payload != payloadIPMI {
			return false
		}
		var ok bool
		code, got, ok = response(body, netFn, cmd, s.rqSeq)
		return ok
	})
	if err != nil {
		return nil, err
	}
	if code != 0 {
		return got, codeError(code)
	}
	return got, nil
}

// next builds the next packet of the session.
func (s *session) next(payload byte, body []byte) []byte {
	s.seq++
	return s.seal(payload, s.remote, s.seq, body)
}

// close tells the controller that the session has ended, and does not wait for an answer. Without that message the
// controller would keep one of its few sessions for another minute.
func (s *session) close() {
	s.rqSeq = (s.rqSeq + 1) & 0x3f
	s.conn.Write(s.next(payloadIPMI, request(netApp, cmdCloseSession, s.rqSeq, binary.LittleEndian.AppendUint32(nil, s.remote))))
	s.conn.Close()
}

// explain says in words why no session came to be, and what to do.
func (l login) explain(err error) error {
	var status statusError
	var code codeError
	if refused := egress.Explain("the IPMI controller at "+l.address+" is not asked", err); refused != nil {
		return refused
	}
	switch {
	case errors.As(err, &code):
		return reason(l.address, "open a session", code)
	case errors.Is(err, errDisturbed):
		return &inventory.Error{
			Kind: inventory.Unavailable, Err: err, Msg: "the IPMI controller at " + l.address + " opens no session: packets were lost on the way",
			Hint: "try again; if it stays so, look at the network to the controller",
		}
	case errors.Is(err, errPassword):
		return &inventory.Error{
			Kind: inventory.Unauthorized, Err: err, Msg: "the IPMI controller at " + l.address + " knows user " + inventory.Clean(l.user, 16) + " with another password, or not at all",
			Hint: "set user and password again; IPMI takes at most 20 characters, and some controllers keep only the first 16",
		}
	case errors.As(err, &status):
		return statusReason(l, status)
	}
	return bmc.Silent("the IPMI controller at "+l.address+" does not answer",
		"check its cable, address and VLAN, that UDP port 623 is let through, and that IPMI over LAN is turned on", err)
}
