package invite

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/duty"
)

// rig is a Book with a clock, and what it has logged and noted.
type rig struct {
	t     *testing.T
	book  *Book
	now   time.Time
	log   bytes.Buffer
	notes []string
	kept  string // of the invitations
	// Answers to the Book.
	pack, note error
	runs       string // name of an instance
}

var (
	near = netip.MustParseAddr("192.0.2.12")
	far  = netip.MustParseAddr("192.0.2.66")
)

func newRig(t *testing.T) *rig {
	r := &rig{t: t, now: time.Date(2026, 11, 28, 8, 0, 0, 0, time.UTC), runs: "node1"}
	r.book = NewBook(Config{
		Pack: func() (HandOver, error) { return HandOver{Key: "the key", Password: "pass-1234"}, r.pack },
		Pin:  testPin,
		Links: func(context.Context) ([]string, error) {
			return []string{"192.0.2.11:8069", "[2001:db8::11]:8069"}, nil
		},
		MayBe: func(_ context.Context, name string) error {
			return MayBe(duty.Roster{Peers: []duty.Peer{{
				Instance: inventory.Instance{Name: r.runs},
				Sight:    duty.Sight{Life: duty.Alive},
			}}}, name)
		},
		Keep: func(_ context.Context, text string, note *Note) error {
			if note != nil {
				r.notes = append(r.notes, note.Instance+": "+note.Detail)
			}
			if r.note == nil {
				r.kept = text
			}
			return r.note
		},
		Now: func() time.Time { return r.now },
		Log: slog.New(slog.NewTextHandler(&r.log, nil)),
	})
	return r
}

func (r *rig) invite(name string) Code {
	r.t.Helper()
	made, err := r.book.Invite(r.t.Context(), name, "user alice", 0)
	if err != nil {
		r.t.Fatal(err)
	}
	c, err := ParseCode(made.Code)
	if err != nil || c.ID() != made.ID {
		r.t.Fatalf("%+v: %v", made, err)
	}
	return c
}

// proof is what a machine has drawn.
func proof(of string) []byte { return []byte(strings.Repeat(of, proofBytes)) }

func (r *rig) show(c Code, from netip.Addr, machine, name string) (HandOver, error) {
	return r.book.HandOver(r.t.Context(), from, Request{ID: c.ID(), Secret: c.secret[:], Proof: proof(machine), Name: name, Host: "host"})
}

func (r *rig) refused(what string, err error, want string) {
	r.t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) || inventory.HintOf(err) == "" {
		r.t.Errorf("%s: %v, hint %q; want %q", what, err, inventory.HintOf(err), want)
	}
}

func (r *rig) given(what string, h HandOver, err error, name string) {
	r.t.Helper()
	if err != nil || h.Key != "the key" || h.Name != name {
		r.t.Errorf("%s: %+v, %v", what, h, err)
	}
}

func TestACodeIsGoodForOneMachine(t *testing.T) {
	r := newRig(t)
	c := r.invite("")
	h, err := r.show(c, near, "a", "node2")
	r.given("the first", h, err, "node2")
	_, err = r.show(c, far, "b", "node3")
	r.refused("another", err, "the code was used by another machine, at 2026-11-28T08:00:00Z from 192.0.2.12")
	_, err = r.show(c, near, "b", "node2")
	r.refused("another at the same address", err, "used by another machine")
	h, err = r.show(c, far, "a", "node2") // its address changed
	r.given("the first again", h, err, "node2")
	r.now = r.now.Add(lives)
	_, err = r.show(c, near, "a", "node2")
	r.refused("the first, too late", err, "the code has expired: it was good until 2026-11-28T08:15:00Z")
	wanted := "the machine at 192.0.2.12 was handed secret.key"
	if len(r.notes) != 2 || !strings.Contains(r.notes[0], wanted) || !strings.Contains(r.notes[0], "user alice") {
		t.Errorf("the events are %q", r.notes)
	}
	i := r.book.Invitations()
	if len(i) != 1 || i[0].State != "used" || i[0].UsedFrom != near || i[0].UsedAs != "node2" {
		t.Errorf("%+v", i)
	}
}

func TestAMachineAsksOftenAndNotWithoutEnd(t *testing.T) {
	r := newRig(t)
	c := r.invite("")
	for range mostGiven {
		h, err := r.show(c, near, "a", "node2")
		r.given("again", h, err, "node2")
	}
	_, err := r.show(c, near, "a", "node2")
	r.refused("once more", err, "this machine has used the code 20 times")
}

func TestInvitationsEnd(t *testing.T) {
	r := newRig(t)
	c := r.invite("")
	r.now = r.now.Add(lives - time.Nanosecond)
	h, err := r.show(c, near, "a", "")
	r.given("at the last moment", h, err, "host")

	c = r.invite("")
	r.now = r.now.Add(lives)
	_, err = r.show(c, near, "a", "node2")
	r.refused("late", err, "the code has expired")
	_, err = r.book.Withdraw(t.Context(), c.ID())
	r.refused("withdrawn late", err, "it is expired")

	c = r.invite("")
	if i, err := r.book.Withdraw(t.Context(), c.ID()); err != nil || i.State != "withdrawn" {
		t.Errorf("%+v, %v", i, err)
	}
	_, err = r.show(c, near, "a", "node2")
	r.refused("withdrawn", err, "the invitation was withdrawn")

	c = r.invite("")
	_, _ = r.show(c, near, "a", "node2")
	if _, err := r.book.Withdraw(t.Context(), c.ID()); err != nil {
		t.Error(err)
	}
	_, err = r.show(c, near, "a", "node2")
	r.refused("withdrawn after its use", err, "the invitation was withdrawn")
	_, err = r.book.Withdraw(t.Context(), "nothing")
	r.refused("not there", err, "there is no invitation")

	r.now = r.now.Add(lives + keepsFor)
	if all := r.book.Invitations(); len(all) != 0 {
		t.Errorf("it keeps %+v", all)
	}
	_, err = r.show(c, near, "a", "node2")
	r.refused("forgotten", err, "no invitation has this code")
}

func TestAnInvitationForANameIsForThatName(t *testing.T) {
	r := newRig(t)
	c := r.invite("node2")
	_, err := r.show(c, near, "a", "node3")
	r.refused("another name", err, "the invitation is for an instance with the name node2")
	h, err := r.show(c, near, "b", "")
	r.given("no name", h, err, "node2")

	c = r.invite("")
	_, err = r.show(c, near, "a", "node1")
	r.refused("the name of one that runs", err, "an instance with the name node1 runs")
	_, err = r.show(c, near, "a", "Node 2")
	r.refused("a bad name", err, "is not a name for an instance")
	h, err = r.show(c, near, "b", "node4") // nothing of this has used it up
	r.given("a good name", h, err, "node4")
	_, err = r.book.Invite(t.Context(), "node1", "alice", 0)
	r.refused("an invitation for one that runs", err, "an instance with the name node1 runs")
}

// TestAnInvitationLivesAsLongAsAnAdminWants makes invitations for several times, and shows each code before and after its end.
func TestAnInvitationLivesAsLongAsAnAdminWants(t *testing.T) {
	for life, isGood := range map[time.Duration]bool{
		time.Minute: true, 20 * time.Minute: true, time.Hour: true,
		-time.Minute: false, time.Second: false, time.Minute - 1: false, time.Hour + 1: false, 1 << 62: false,
	} {
		r := newRig(t)
		made, err := r.book.Invite(t.Context(), "", "alice", life)
		if !isGood {
			r.refused(life.String(), err, "an invitation cannot be good for")
			continue
		}
		if err != nil || !made.ExpiresAt.Equal(r.now.Add(life)) {
			t.Errorf("%s: until %s, %v", life, made.ExpiresAt, err)
		}
		c, err := ParseCode(made.Code)
		if err != nil {
			t.Fatal(err)
		}
		r.now = r.now.Add(life - 1)
		h, err := r.show(c, near, "a", "node2")
		r.given(life.String(), h, err, "node2")
		r.now = r.now.Add(1)
		_, err = r.show(c, near, "a", "node2")
		r.refused(life.String(), err, "the code has expired")
	}
}

// TestWhatCanBeMendedDoesNotUseTheCodeUp refuses for reasons that an admin mends at the instance.
func TestWhatCanBeMendedDoesNotUseTheCodeUp(t *testing.T) {
	r := newRig(t)
	c := r.invite("")
	r.pack = inventory.Errorf(inventory.Conflict, "the inventory is in a file of SQLite").WithHint("move it")
	_, err := r.show(c, near, "a", "node2")
	r.refused("no package", err, "SQLite")
	_, err = r.book.Invite(t.Context(), "", "alice", 0)
	r.refused("no package to invite to", err, "SQLite")
	r.pack, r.note = nil, errors.New("the database is away")
	if h, err := r.show(c, near, "a", "node2"); err == nil || h.Key != "" {
		t.Errorf("the key was handed over without a trace: %+v, %v", h, err)
	}
	r.note = nil
	h, err := r.show(c, far, "b", "node2")
	r.given("later, to another machine", h, err, "node2")
}

func TestGuessesAreBounded(t *testing.T) {
	r := newRig(t)
	c := r.invite("")
	bad := c
	bad.secret[15] ^= 1
	for range mostTries {
		_, err := r.show(bad, far, "x", "node2")
		r.refused("a wrong code", err, "no invitation has this code")
	}
	_, err := r.show(c, far, "x", "node2")
	r.refused("the right code after many wrong ones", err, "too many wrong codes came from 192.0.2.66")
	if h, err := r.show(c, near, "a", "node2"); h.Key != "" {
		t.Errorf("ten wrong codes with its id have not ended the invitation: %v", err)
	} else {
		r.refused("another machine", err, "the invitation has ended after 10 wrong codes")
	}
	// Without the id, an invitation is not found and not ended.
	c = r.invite("")
	for n := range 3 * mostTries {
		_, err = r.show(draw(t), netip.AddrFrom4([4]byte{198, 51, 100, byte(n)}), "x", "node2")
		r.refused("another code", err, "no invitation has this code")
	}
	h, err := r.show(c, near, "a", "node2")
	r.given("the machine meanwhile", h, err, "node2")
	r.now = r.now.Add(triesFor)
	_, err = r.show(draw(t), far, "x", "node2")
	r.refused("after the wait", err, "no invitation has this code")
	// An IPv6 network counts as one address.
	for n := range mostTries {
		_, _ = r.show(draw(t), netip.MustParseAddr(fmt.Sprintf("2001:db8::%x", n+1)), "x", "")
	}
	_, err = r.show(draw(t), netip.MustParseAddr("2001:db8::ffff"), "x", "")
	r.refused("a neighbour", err, "too many wrong codes")
}

func TestTheMemoryOfWrongCodesIsBounded(t *testing.T) {
	all := tries{}
	now := time.Now()
	for n := range 3 * mostSources {
		all.wrong(netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}), now)
	}
	if len(all) > mostSources {
		t.Errorf("it remembers %d addresses", len(all))
	}
	r := newRig(t)
	for range mostOpen {
		r.invite("")
	}
	_, err := r.book.Invite(t.Context(), "", "alice", 0)
	r.refused("one more", err, "16 invitations are open")
	for range 20 {
		r.now = r.now.Add(lives)
		for range mostOpen {
			r.invite("")
		}
	}
	if n := len(r.book.all); n > mostKept {
		t.Errorf("it keeps %d invitations", n)
	}
}

// TestNoSecretIsLoggedOrNoted looks for the code and its parts in all that people with fewer rights may read.
func TestNoSecretIsLoggedOrNoted(t *testing.T) {
	r := newRig(t)
	c := r.invite("")
	bad := c
	bad.secret[0] ^= 1
	_, _ = r.show(bad, far, "x", "node2")
	_, _ = r.show(c, near, "a", "node2")
	_, _ = r.show(c, far, "b", "node2")
	text := r.log.String() + strings.Join(r.notes, "\n") + fmt.Sprintf("%+v", r.book.Invitations())
	if !strings.Contains(text, c.ID()) || !strings.Contains(text, "wrong code") || !strings.Contains(text, "192.0.2.66") {
		t.Errorf("the log does not say who came:\n%s", text)
	}
	for _, secret := range []string{
		c.Text(), c.Text()[60:80], fmt.Sprintf("%x", c.secret), fmt.Sprint(c.secret), "the key", "pass-1234",
		string(proof("a")),
	} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is in:\n%s", secret, text)
		}
	}
}

func TestOneMachineAtATimeUsesACode(t *testing.T) {
	r := newRig(t)
	c := r.invite("")
	inside, goOn := make(chan bool), make(chan bool)
	r.book.cfg.Keep = func(context.Context, string, *Note) error {
		inside <- true
		<-goOn
		return nil
	}
	first := make(chan error)
	go func() {
		_, err := r.show(c, near, "a", "node2")
		first <- err
	}()
	<-inside
	_, err := r.show(c, far, "b", "node2")
	r.refused("at the same time", err, "the code is being used at this moment")
	goOn <- true
	if err := <-first; err != nil {
		t.Error(err)
	}
	_, err = r.show(c, far, "b", "node2")
	r.refused("after it", err, "used by another machine")
}

func TestAddressesForANewMachine(t *testing.T) {
	peer := func(name string, life duty.Life, links ...string) duty.Peer {
		return duty.Peer{Instance: inventory.Instance{Name: name, Links: links}, Sight: duty.Sight{Life: life}, IsSelf: name == "self"}
	}
	r := duty.Roster{Peers: []duty.Peer{
		peer("a", duty.Alive, "192.0.2.2:8069"), peer("b", duty.Silent, "192.0.2.3:8069"), peer("c", duty.Unknown, "192.0.2.4:8069"),
		peer("self", duty.Alive, "127.0.0.1:8069", "192.0.2.1:8069", "[2001:db8::1]:8069"),
	}}
	links, err := Links(r)
	if want := []string{"192.0.2.1:8069", "[2001:db8::1]:8069", "192.0.2.2:8069"}; err != nil || !slices.Equal(links, want) {
		t.Errorf("%q, %v", links, err)
	}
	if _, err := Links(duty.Roster{Peers: []duty.Peer{peer("self", duty.Alive, "[::1]:8069")}}); !inventory.IsKind(err,
		inventory.Conflict) {
		t.Errorf("on loopback: %v", err)
	}
	for name, want := range map[string]bool{"a": false, "b": true, "c": false, "new": true} {
		if err := MayBe(r, name); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestANewLeaderKnowsTheInvitations goes on with what the leader before has stored.
func TestANewLeaderKnowsTheInvitations(t *testing.T) {
	r := newRig(t)
	open, used, ended, wrong := r.invite(""), r.invite(""), r.invite(""), r.invite("")
	h, err := r.show(used, near, "a", "node2")
	r.given("the first machine", h, err, "node2")
	if _, err := r.book.Withdraw(t.Context(), ended.ID()); err != nil {
		t.Fatal(err)
	}
	bad := wrong
	bad.secret[0] ^= 1
	for n := range mostWrong { // each from another address
		_, err = r.show(bad, netip.AddrFrom4([4]byte{10, 0, byte(n), 1}), "a", "node3")
		r.refused("a wrong code", err, "no invitation has this code")
	}
	if had := []byte(r.kept); bytes.Contains(had, open.secret[:]) || strings.Contains(r.kept, base64.StdEncoding.EncodeToString(open.secret[:])) {
		t.Errorf("a secret is stored: %s", had)
	}
	was := r.book.Invitations()
	r.book = NewBook(r.book.cfg)
	if err := r.book.Load(r.kept); err != nil {
		t.Fatal(err)
	}
	if is := r.book.Invitations(); !reflect.DeepEqual(is, was) {
		t.Errorf("the invitations were\n%+v, and are\n%+v", was, is)
	}
	h, err = r.show(open, far, "b", "node4")
	r.given("with an open one", h, err, "node4")
	h, err = r.show(used, near, "a", "node2")
	r.given("the same machine once more", h, err, "node2")
	_, err = r.show(used, far, "b", "node5")
	r.refused("another machine", err, "the code was used by another machine")
	_, err = r.show(ended, near, "a", "node5")
	r.refused("a withdrawn one", err, "was withdrawn")
	_, err = r.show(wrong, near, "a", "node5")
	r.refused("after too many wrong codes", err, "wrong codes")
	if err := r.book.Load("{"); err == nil {
		t.Error("what cannot be read is taken")
	}
}

func TestAnInvitationThatCannotBeStoredIsNone(t *testing.T) {
	r := newRig(t)
	r.note = errors.New("the database is away")
	if _, err := r.book.Invite(t.Context(), "", "user alice", 0); err == nil || len(r.book.Invitations()) > 0 {
		t.Errorf("%v: %+v", err, r.book.Invitations())
	}
}
