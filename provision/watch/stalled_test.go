package watch

import (
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/session"
	"slipway.dev/slipway/pxe"
)

func TestWhatABootThatStandsStillGoesOnWith(t *testing.T) {
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	boot := func(id inventory.SessionID, step string, b pxe.Boot, last time.Duration) session.Running {
		return session.Running{BootSession: inventory.BootSession{ID: id, Step: step, Boot: string(b), LastAt: at.Add(last), Reason: "why"}}
	}
	asIPXE := func(r session.Running) session.Running { r.Stage = pxe.StageIPXE; return r }
	const ack, script = inventory.EventDHCPAck, inventory.EventScriptAsked
	for _, c := range []struct {
		name string
		was  session.Running
		now  session.Running
		want string // "" while it stands still
	}{
		{"it goes on", boot("a", ack, "", 0), boot("a", script, "", time.Second), "the boot went on"},
		{"a later boot comes further", boot("a", ack, "", 0), boot("b", script, "", time.Second), "the boot went on"},
		{"an earlier boot had come further", boot("a", ack, "", 0), boot("b", script, "", -time.Second), ""},
		{"a later boot comes as far", boot("a", ack, "", 0), boot("b", ack, "", time.Second), ""},
		{"a later boot is sent to its disk", boot("a", ack, pxe.BootImage, 0), boot("b", ack, pxe.BootDisk, time.Second), "nothing is to be booted"},
		{"it is sent to its disk by now", boot("a", ack, pxe.BootImage, 0), boot("a", ack, pxe.BootDisk, time.Second), "nothing is to be booted"},
		{"a later boot sends no more", boot("a", inventory.EventArtefactSent, "", 0), boot("b", inventory.EventArtefactSent, "", time.Second), ""},
		{"it waits as before", boot("a", ack, pxe.BootWait, 0), boot("a", ack, pxe.BootWait, 0), ""},
		{"its iPXE asks", boot("a", ack, "", 0), asIPXE(boot("a", ack, "", time.Second)), "its boot loader asks"},
		{"its iPXE asks again", asIPXE(boot("a", ack, "", 0)), asIPXE(boot("a", ack, "", time.Second)), ""},
		{"iPXE of a later boot asks", boot("a", ack, "", 0), asIPXE(boot("b", ack, "", time.Second)), ""},
		{"it says the same again", boot("a", ack, pxe.BootDisk, 0), boot("a", ack, pxe.BootDisk, time.Second), ""},
	} {
		was := StalledBoot{Boot: c.was.BootSession, stage: c.was.Stage, at: at}
		if got := wentOn(&was, []session.Running{c.now}, at.Add(time.Minute)); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
