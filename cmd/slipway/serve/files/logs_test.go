package files

import (
	"testing"
	"time"

	"slipway.dev/slipway/cmd/slipway/serve/peer"
	"slipway.dev/slipway/cmd/slipway/serve/peer/peertest"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/logbook"
	"slipway.dev/slipway/provision/duty"
)

// book returns a logbook on disk with one log, and the reference of that log.
func book(t *testing.T, host, text string) (b *logbook.Book, ref string) {
	t.Helper()
	b, err := logbook.Open(logbook.Config{Dir: t.TempDir(), Now: time.Now})
	if err == nil {
		ref, err = b.Add(host, text)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b, ref
}

func TestALogIsFoundOnTheInstanceThatHasIt(t *testing.T) {
	who := peertest.Identity(t, "k")
	own, ownRef := book(t, "host-1", "of this instance")
	theirs, theirRef := book(t, "host-2", "of the other instance")
	// The other instance knows others, too. It does not ask them for this one.
	link := peertest.Serve(t, who, func(s *peer.Server) { Logs{Own: theirs, Others: &Others{}}.Register(s) })
	client := peer.NewClient(who, "a")
	t.Cleanup(client.Close)
	peerOf := func(name, link string, l duty.Life) duty.Peer {
		return duty.Peer{Instance: inventory.Instance{ID: name, Name: name, Links: []string{link}}, Sight: duty.Sight{Life: l}}
	}
	b, unreachable := peerOf("b", link, duty.Alive), peerOf("d", "127.0.0.1:1", duty.Alive)
	c := peerOf("c", "127.0.0.1:1", duty.Silent)
	for _, tc := range []struct {
		name, ref  string
		peers      []duty.Peer
		text, away string
	}{
		{"its own", ownRef, []duty.Peer{b, c}, "of this instance", ""},
		{"of another one", theirRef, []duty.Peer{c, b}, "of the other instance", ""},
		{"of another one, behind one that does not answer", theirRef, []duty.Peer{unreachable, b}, "of the other instance", ""},
		{"of nobody", "host-2/1", []duty.Peer{b}, "", ""},
		{"perhaps of one that is silent", "host-2/1", []duty.Peer{c, b}, "", "c"},
		{"perhaps of one that cannot be reached", theirRef, []duty.Peer{unreachable}, "", "d"},
		{"a path", "../../etc/passwd", []duty.Peer{b}, "", ""},
	} {
		l := Logs{Own: own, Others: NewOthers(client, func() ([]duty.Peer, bool) { return tc.peers, true })}
		text, away, ok := l.Text(t.Context(), tc.ref)
		if text != tc.text || away != tc.away || ok != (tc.text != "") {
			t.Errorf("%s: %q, away %q, %t", tc.name, text, away, ok)
		}
	}
	starts := Logs{Own: own, Others: NewOthers(client, func() ([]duty.Peer, bool) { return nil, false })}
	if text, away, ok := starts.Text(t.Context(), theirRef); text != "" || away == "" || ok {
		t.Errorf("an instance that does not know the others yet finds %q, away %q, %t", text, away, ok)
	}
	if text, away, ok := (Logs{Own: own}).Text(t.Context(), theirRef); text != "" || away != "" || ok {
		t.Errorf("an instance alone finds %q, %q, %t", text, away, ok)
	}
}
