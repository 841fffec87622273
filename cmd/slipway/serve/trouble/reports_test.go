package trouble

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/cmd/slipway/serve/peer"
	"slipway.dev/slipway/cmd/slipway/serve/peer/peertest"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/provision/duty"
)

var (
	noRoom = Trouble{inventory.IssueDisk, inventory.IssueDisk, inventory.SeverityError, "data directory /d has 0 MiB free", "free some"}
	noCard = Trouble{
		inventory.IssueInterface + "/eth1", inventory.IssueInterface, inventory.SeverityError, "nobody is answered on interface eth1", "ip link",
	}
)

// peerOf is another instance with a life.
func peerOf(name string, life duty.Life) duty.Peer {
	return duty.Peer{Instance: inventory.Instance{ID: "id-of-" + name, Name: name}, Sight: duty.Sight{Life: life}}
}

func TestTheLeaderKnowsTheTroublesOfOthers(t *testing.T) {
	start := time.Date(2026, 11, 28, 7, 0, 0, 0, time.UTC)
	stored := func(name string) []inventory.Issue {
		return Named([]inventory.Issue{{Key: inventory.IssueClock, Type: inventory.IssueClock, Cause: "the clock was set"}}, name)
	}
	for name, tc := range map[string]struct {
		told []Trouble // nil: nothing
		life duty.Life
		age  time.Duration // of the report
		want string
	}{
		"all is well":                                 {[]Trouble{}, duty.Alive, 0, ""},
		"a disk is full":                              {[]Trouble{noRoom}, duty.Alive, 0, "disk-full@b"},
		"two things are wrong":                        {[]Trouble{noRoom, noCard}, duty.Alive, 0, "disk-full@b interface-unserved/eth1@b"},
		"it lives, and tells nothing any more":        {[]Trouble{noRoom}, duty.Alive, time.Hour, "disk-full@b"},
		"nobody knows whether it lives":               {[]Trouble{noRoom}, duty.Unknown, time.Hour, "disk-full@b"},
		"it is silent: the rest is unknown":           {[]Trouble{noRoom}, duty.Silent, time.Hour, ""},
		"it has lost the database, and tells so":      {[]Trouble{noRoom}, duty.Silent, time.Second, "disk-full@b"},
		"it was stopped":                              {[]Trouble{noRoom}, duty.Stopped, 0, ""},
		"after a takeover, before it has told":        {nil, duty.Unknown, 0, "clock-jumped@b"},
		"after a takeover, before it has told, alive": {nil, duty.Alive, 0, "clock-jumped@b"},
		"after a takeover, and it is silent":          {nil, duty.Silent, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReports()
			if tc.told != nil {
				if err := r.take("id-of-b", Report{tc.told}, start); err != nil {
					t.Fatal(err)
				}
			}
			self := peerOf("a", duty.Alive)
			self.IsSelf = true
			var got []string
			for _, i := range r.Issues([]duty.Peer{self, peerOf("b", tc.life)}, stored, start.Add(tc.age)) {
				got = append(got, i.Key)
				if i.Instance != "b" || !strings.HasPrefix(i.Cause, "instance b: ") {
					t.Errorf("%+v", i)
				}
			}
			if slices.Sort(got); strings.Join(got, " ") != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestADeletedInstanceHasNoTroubles(t *testing.T) {
	r := NewReports()
	none := func(string) []inventory.Issue { return nil }
	if err := r.take("id-of-b", Report{[]Trouble{noRoom}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if all := r.Issues(nil, none, time.Now()); len(all) > 0 || len(r.by) > 0 {
		t.Errorf("%+v, %+v", all, r.by)
	}
}

func TestWhatNoMachineHasIsNoTrouble(t *testing.T) {
	with := func(alter func(*Trouble)) Trouble {
		bad := noCard
		alter(&bad)
		return bad
	}
	for name, bad := range map[string]Trouble{
		"a type that is not of a machine": with(func(t *Trouble) { t.Type, t.Key = inventory.IssueInstance, inventory.IssueInstance+"/b" }),
		"a type that nobody knows":        with(func(t *Trouble) { t.Type, t.Key = "other", "other" }),
		"a key of another type":           with(func(t *Trouble) { t.Key = inventory.IssueDisk }),
		"a key that begins like its type": with(func(t *Trouble) { t.Key = inventory.IssueInterface + "x" }),
		"a long key":                      with(func(t *Trouble) { t.Key += strings.Repeat("x", keyAtMost) }),
		"a severity that there is not":    with(func(t *Trouble) { t.Severity = "fatal" }),
		"the same once more":              noRoom,
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReports()
			err := r.take("id-of-b", Report{[]Trouble{noRoom, bad}}, time.Now())
			if !inventory.IsKind(err, inventory.Invalid) || len(r.by["id-of-b"].all) != 1 {
				t.Errorf("%v; kept: %+v", err, r.by)
			}
		})
	}
	r := NewReports()
	if err := r.take("", Report{}, time.Now()); !inventory.IsKind(err, inventory.Invalid) {
		t.Errorf("nobody reports: %v", err)
	}
	if err := r.take("id-of-b", Report{make([]Trouble, mostTroubles+1)}, time.Now()); !inventory.IsKind(err, inventory.Invalid) {
		t.Errorf("too many: %v", err)
	}
	long := noRoom
	long.Cause = strings.Repeat("x", 10_000)
	if err := r.take("id-of-b", Report{[]Trouble{long}}, time.Now()); err != nil || len(r.by["id-of-b"].all[0].Cause) > CauseAtMost+10 {
		t.Errorf("a long cause: %v", err)
	}
}

// TestAnIssueIsOfOneInstance follows the troubles of b through a takeover: the new leader, a, finds the issue in the store.
func TestAnIssueIsOfOneInstance(t *testing.T) {
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	s, r, now := NewAlarms(), NewReports(), time.Now()
	s.Set(nil, now, log) // it has looked at its machine before it led
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{Path: filepath.Join(t.TempDir(), "slipway.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	err = store.Write(t.Context(), func(tx inventory.Tx) error {
		full := inventory.Issue{Key: inventory.IssueDisk, Type: inventory.IssueDisk, Severity: inventory.SeverityError, Cause: "full"}
		_, err := tx.OpenIssue(&Named([]inventory.Issue{full}, "b")[0], now)
		return errors.Join(err, s.Load(tx))
	})
	if err != nil {
		t.Fatal(err)
	}
	own := func() []inventory.Issue {
		return Named([]inventory.Issue{{Key: inventory.IssueDisk, Type: inventory.IssueDisk, Cause: "full"}}, "a")
	}
	look := func(life duty.Life) (opened, closed []string) {
		s.Set(append(own(), r.Issues([]duty.Peer{peerOf("b", life)}, s.Of, now)...), now, log)
		all, closed := s.pending()
		for _, i := range all {
			opened = append(opened, i.Key)
		}
		return opened, closed
	}
	if opened, closed := look(duty.Alive); !slices.Equal(opened, []string{"disk-full@a"}) || len(closed) > 0 {
		t.Errorf("opens %q, closes %q", opened, closed)
	}
	if err := r.take("id-of-b", Report{}, now); err != nil {
		t.Fatal(err)
	}
	if opened, closed := look(duty.Alive); len(opened) != 1 || !slices.Equal(closed, []string{"disk-full@b"}) {
		t.Errorf("opens %q, closes %q", opened, closed)
	}
}

func TestOnlyTroublesThatNobodyHearsAreLogged(t *testing.T) {
	var u unheard
	away := errors.New("no answer")
	for n, step := range []struct {
		troubleN int
		err      error
		want     bool
	}{
		{0, nil, false},
		{0, away, false}, // nothing is wrong with this machine
		{1, away, true},
		{1, away, false},
		{2, errors.New("no route"), true},
		{0, errors.New("no route"), false},
		{1, nil, false},
		{1, errors.New("no route"), true},
	} {
		if got := u.isNew(step.troubleN, step.err); got != step.want {
			t.Errorf("step %d: %t", n+1, got)
		}
	}
}

func TestAReportNamesItsInstance(t *testing.T) {
	who := peertest.Identity(t, "k")
	r := NewReports()
	at := peertest.Serve(t, who, func(s *peer.Server) { r.Register(s) })
	c := peer.NewClient(who, "id-of-b")
	t.Cleanup(c.Close)
	for name, client := range map[string]*http.Client{"HTTP": c.HTTP, "Upgrade": {Transport: c.Upgrade}} {
		clear(r.by)
		_, err := peer.Call[struct{}](t.Context(), client, "https://"+at+ReportPath, Report{[]Trouble{noRoom}})
		if err != nil || len(r.by["id-of-b"].all) != 1 {
			t.Errorf("%s: %v; kept: %+v", name, err, r.by)
		}
	}
}
