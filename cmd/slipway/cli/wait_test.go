package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
)

func TestProgressIsSaidInBytesAndRate(t *testing.T) {
	for _, tc := range []struct {
		name string
		p    inventory.Progress
		want string
	}{
		{"nothing known", inventory.Progress{}, ""},
		{"all known", inventory.Progress{Bytes: 500e6, Total: 2e9, BytesPerSecond: 312e6}, "write: 500 MB of 2.00 GB, 25 %, 312 MB/s"},
		{"no total", inventory.Progress{Bytes: 500e6}, "write: 500 MB"},
		{"only words", inventory.Progress{Detail: "sda"}, "write: sda"},
		{"more than all", inventory.Progress{Bytes: 3e9, Total: 2e9}, "write: 3.00 GB of 2.00 GB, 100 %"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := ProgressText(&inventory.Operation{Step: inventory.StepWrite, Progress: tc.p}); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestProgressThatCannotBeOverwrittenIsSaidNowAndThen(t *testing.T) {
	var talk bytes.Buffer
	f := &Follower{s: &Session{Ctx: context.Background(), Err: &talk}}
	for n := range int64(100) {
		f.told(&inventory.Operation{Step: inventory.StepWrite, Progress: inventory.Progress{Bytes: n * 1e7, Total: 1e9}})
	}
	if n := strings.Count(talk.String(), "\n"); n != 1 {
		t.Errorf("%d lines: %s", n, talk.String())
	}
}

func TestAServerThatIsAwayIsWaitedFor(t *testing.T) {
	var talk bytes.Buffer
	f := &Follower{s: &Session{Ctx: context.Background(), Err: &talk}}
	n := 0
	err := f.until(WaitForEver, "machine a", func() (bool, error) {
		if n++; n < 3 {
			return false, inventory.Errorf(inventory.Unavailable, "no answer")
		}
		return true, nil
	})
	if err != nil || strings.Count(talk.String(), "no answer; trying again") != 1 {
		t.Errorf("%v after %d: %s", err, n, talk.String())
	}
}

func TestWhatIsFollowedGoesOnWithoutTheCommand(t *testing.T) {
	var talk bytes.Buffer
	ctx, cancel := context.WithCancel(context.Background())
	f := &Follower{s: &Session{Ctx: ctx, Err: &talk}}
	err := f.until(WaitForEver, "machine a", func() (bool, error) {
		cancel()
		return false, ctx.Err()
	})
	if err != ErrSaid || !strings.Contains(talk.String(), "machine a goes on without this command") {
		t.Errorf("%v: %s", err, talk.String())
	}
}
