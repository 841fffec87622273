package pxe

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

var (
	noticedFirst = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	otherServer  = ForeignServer{Interface: "eno2", Server: netip.MustParseAddr("10.0.0.9"), MAC: "52:54:00:aa:00:09", IsHeard: true}
)

func TestWhatIsRememberedOfAnotherServer(t *testing.T) {
	six := ForeignServer{Interface: "eno2", DUID: "0003000152540000aa09", IsHeard: true}
	sixWhole, named, proxy, noMAC := six, otherServer, otherServer, otherServer
	sixWhole.Server, sixWhole.MAC = netip.MustParseAddr("fe80::9"), otherServer.MAC
	named.IsHeard, proxy.IsProxy, noMAC.MAC = false, true, ""
	for name, c := range map[string]struct {
		first, then ForeignServer
		after       time.Duration
		isNews      bool
		want        string // of the list: since, last, what it is
	}{
		"it goes on":                         {otherServer, otherServer, 29 * time.Second, false, "[0s 29s 10.0.0.9 52:54:00:aa:00:09]"},
		"it is told of anew":                 {otherServer, otherServer, 30 * time.Second, true, "[0s 30s 10.0.0.9 52:54:00:aa:00:09]"},
		"it was quiet for an hour":           {otherServer, otherServer, time.Hour, true, "[0s 1h0m0s 10.0.0.9 52:54:00:aa:00:09]"},
		"it was gone":                        {otherServer, otherServer, time.Hour + 1, true, "[1h0m0s 1h0m0s 10.0.0.9 52:54:00:aa:00:09]"},
		"its MAC is said once":               {otherServer, noMAC, time.Minute, true, "[0s 1m0s 10.0.0.9 52:54:00:aa:00:09]"},
		"its address and MAC are said once":  {sixWhole, six, time.Minute, true, "[0s 1m0s fe80::9 52:54:00:aa:00:09]"},
		"its address and MAC are said later": {six, sixWhole, time.Minute, true, "[0s 1m0s fe80::9 52:54:00:aa:00:09]"},
		"it is a proxy now":                  {otherServer, proxy, time.Minute, true, "[0s 1m0s 10.0.0.9 52:54:00:aa:00:09 proxy]"},
		"it gives addresses now":             {proxy, otherServer, time.Minute, true, "[0s 1m0s 10.0.0.9 52:54:00:aa:00:09]"},
		"a machine names it before it is heard": {
			named, otherServer, time.Second, true,
			"[1s 1s 10.0.0.9 52:54:00:aa:00:09] [0s 0s 10.0.0.9 52:54:00:aa:00:09 named]",
		},
		"a machine names it as well": {
			otherServer, named, time.Second, true,
			"[0s 0s 10.0.0.9 52:54:00:aa:00:09] [1s 1s 10.0.0.9 52:54:00:aa:00:09 named]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var all Foreigners
			all.Note(&c.first, noticedFirst)
			at := noticedFirst.Add(c.after)
			if isNews := all.Note(&c.then, at); isNews != c.isNews {
				t.Errorf("it is news: %v", isNews)
			}
			got := ""
			for i, f := range all.List(at) {
				if i > 0 {
					got += " "
				}
				got += fmt.Sprintf("[%s %s %s %s", f.SinceAt.Sub(noticedFirst).Truncate(time.Second), f.LastAt.Sub(noticedFirst).Truncate(time.Second), f.Server, f.MAC)
				for word, is := range map[string]bool{" proxy": f.IsProxy, " named": !f.IsHeard} {
					if is {
						got += word
					}
				}
				got += "]"
			}
			if got != c.want {
				t.Errorf("remembered: %s, want %s", got, c.want)
			}
		})
	}
}

// TestWhoIsRememberedWhenThereAreTooMany fills the table with servers that were heard, or that machines only named.
func TestWhoIsRememberedWhenThereAreTooMany(t *testing.T) {
	for name, c := range map[string]struct {
		heardN int // of those that are there; the rest were named
		then   ForeignServer
		after  time.Duration
		isIn   bool
	}{
		"one that is heard, for one that was named":        {ForeignersAtMost - 1, ForeignServer{IsHeard: true}, 0, true},
		"one that is heard, all were":                      {ForeignersAtMost, ForeignServer{IsHeard: true}, 0, false},
		"one that is heard, all were, but long ago":        {ForeignersAtMost, ForeignServer{IsHeard: true}, time.Hour + 1, true},
		"one that is named, others were":                   {0, ForeignServer{}, 0, false},
		"one that is named, others were heard long ago":    {ForeignersAtMost, ForeignServer{}, time.Hour + 1, true},
		"one that is named, others were heard an hour ago": {ForeignersAtMost, ForeignServer{}, time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			var all Foreigners
			for i := range ForeignersAtMost {
				all.Note(&ForeignServer{Server: netip.AddrFrom4([4]byte{10, 0, 1, byte(i)}), IsHeard: i < c.heardN}, noticedFirst)
			}
			at := noticedFirst.Add(c.after)
			c.then.Server = otherServer.Server
			if is := all.Note(&c.then, at); is != c.isIn {
				t.Errorf("it is remembered: %v", is)
			}
			heardN := 0
			for _, f := range all.List(noticedFirst) {
				if f.IsHeard && f.Server != c.then.Server {
					heardN++
				}
			}
			if c.after == 0 && heardN != c.heardN {
				t.Errorf("%d of %d that were heard are left", heardN, c.heardN)
			}
			last := ForeignServer{Server: netip.AddrFrom4([4]byte{10, 0, 1, 0}), IsHeard: c.heardN > 0}
			if c.after == 0 && !all.Note(&last, noticedFirst.Add(ForeignTellEvery)) {
				t.Error("one that is there is not told of again")
			}
		})
	}
}
