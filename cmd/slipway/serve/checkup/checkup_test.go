package checkup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"slipway.dev/slipway/cmd/slipway/doctor"
	"slipway.dev/slipway/cmd/slipway/serve/peer"
	"slipway.dev/slipway/cmd/slipway/serve/peer/peertest"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/duty"
)

// says is a check with some words.
func says(name, detail string) func(context.Context) []doctor.Check {
	return func(context.Context) []doctor.Check {
		return []doctor.Check{{Name: name, Status: doctor.OK, Detail: detail}}
	}
}

// leaderAt is the leader at an address of the link.
type leaderAt struct {
	client *peer.Client
	at     string
	fails  error
}

func (l *leaderAt) Greet(context.Context) error { return l.fails }

func (l *leaderAt) Call(ctx context.Context, path string, answer any) (err error) {
	all, err := peer.Call[[]doctor.Check](ctx, l.client.HTTP, "https://"+l.at+path, struct{}{})
	*answer.(*[]doctor.Check) = all
	return err
}

// TestEachCheckSaysWhichInstanceItIsAbout asks b, while a leads and c lives.
func TestEachCheckSaysWhichInstanceItIsAbout(t *testing.T) {
	who := peertest.Identity(t, "k")
	client := peer.NewClient(who, "b")
	t.Cleanup(client.Close)
	a := New(Config{Machine: says("disk", "of a"), Site: says("instances", "3 of 3")})
	c := New(Config{Machine: func(context.Context) []doctor.Check {
		return []doctor.Check{{Name: "disk", Status: "fine", Detail: strings.Repeat("x", 5000), Instance: "a", IsHere: true}}
	}})
	atA := peertest.Serve(t, who, func(s *peer.Server) { a.Register(s); a.RegisterSite(s) })
	atC := peertest.Serve(t, who, func(s *peer.Server) { c.Register(s) })
	other := func(name string, life duty.Life, links ...string) duty.Peer {
		return duty.Peer{Instance: inventory.Instance{Name: name, Run: "r", Links: links}, Sight: duty.Sight{Life: life}}
	}
	leader := &leaderAt{client: client, at: atA}
	leads := false
	b := New(Config{
		Name: "b", Machine: says("disk", "of b"), Site: says("instances", "2 of 3"), Leads: func() bool { return leads }, Leader: leader,
		HTTP: client.HTTP, Others: func() ([]duty.Peer, bool) {
			return []duty.Peer{
				other("a", duty.Alive, "127.0.0.1:1", atA), other("c", duty.Alive, atC), other("d", duty.Alive, "127.0.0.1:1"), other("e", duty.Silent, atC),
			}, true
		},
	})
	look := func() (all []string) {
		for _, k := range b.Look(t.Context()) {
			where := k.Instance
			if k.IsHere {
				where += " (here)"
			}
			all = append(all, fmt.Sprintf("%s | %s | %s %s", where, k.Name, k.Status, k.Detail))
		}
		return all
	}
	check := func(what string, want ...string) {
		t.Helper()
		got := look()
		if len(got) != len(want) {
			t.Fatalf("%s: %q", what, got)
		}
		for n := range want {
			if !strings.HasPrefix(got[n], want[n]) || len(got[n]) > 1200 {
				t.Errorf("%s: %s, want %s", what, got[n], want[n])
			}
		}
	}
	machines := []string{"a | disk | ok of a", "c | disk | warning xxx", "d | self-check | warning nobody knows how its machine is"}
	here := "b (here) | disk | ok of b"
	check("a leads", append([]string{here, "b (here) | engine | ok the instance with the engine answers in", " | instances | ok 3 of 3"}, machines...)...)
	leader.fails = errors.New("no answer")
	check("nobody answers", append([]string{here, "b (here) | engine | error the instance with the engine does not answer"}, machines...)...)
	leader.fails, leader.at = nil, atC
	check("it does not say", append([]string{here, "b (here) | engine | error the instance with the engine does not say how the site is"}, machines...)...)
	leads = true
	check("b leads", append([]string{here, " | instances | ok 2 of 3"}, machines...)...)
	alone := New(Config{Machine: says("disk", "here"), Site: says("instances", "one")}).Look(t.Context())
	if len(alone) != 2 || alone[0].Instance != "" || alone[0].IsHere {
		t.Errorf("with SQLite: %+v", alone)
	}
}
