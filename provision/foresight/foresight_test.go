package foresight

import (
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

func TestAQuestionSaysWhatWillHappen(t *testing.T) {
	inspect := []inventory.Step{inventory.StepPower, inventory.StepNetboot, inventory.StepInspect, inventory.StepBurnIn, inventory.StepRest}
	clean := []inventory.Step{inventory.StepFence, inventory.StepBudget, inventory.StepPower, inventory.StepNetboot, inventory.StepWipe, inventory.StepRest}
	write := []inventory.Step{inventory.StepBudget, inventory.StepPreBoot, inventory.StepPower, inventory.StepNetboot, inventory.StepWrite, inventory.StepReboot, inventory.StepFirstBoot, inventory.StepPostJoin}
	for _, x := range []struct {
		f    Facts
		want string
	}{
		{Facts{Verb: "accept", Steps: inspect, Driver: inventory.Redfish}, "boots, inspects and powers off {hosts}"},
		{Facts{Verb: "accept", Steps: inspect, Driver: inventory.Redfish, BurnInFor: inventory.Duration(10 * time.Minute)}, "boots, inspects, burns in for 10m and powers off {hosts}"},
		{Facts{Verb: "accept", Steps: inspect}, "inspects {hosts}, as soon as somebody starts a boot from the network by hand"},
		{Facts{Verb: "accept", Steps: inspect, IsHere: true}, "boots and inspects {hosts}"},
		{Facts{Verb: "accept", Steps: inspect, Driver: inventory.IPMI, Runs: true}, "inspects and powers off {hosts} at the next boot from the network; Slipway restarts nothing before that"},
		{Facts{Verb: "inspect", Steps: inspect, Driver: inventory.IPMI, Runs: true, MayRestart: true}, "boots, inspects and powers off {hosts}"},
		{Facts{Verb: "accept", Driver: inventory.Redfish}, "accepts {hosts}; Slipway boots nothing there now"},
		{Facts{Verb: "clean", Steps: clean, Driver: inventory.Webhook}, "switches off, boots, wipes (quick) and powers off {hosts}; all data on the disks is lost, except on the disks to keep"},
		{
			Facts{Verb: "clean", Steps: clean, Mode: inventory.CleanSecure},
			"wipes (secure) {hosts}, as soon as somebody starts a boot from the network by hand; all data on the disks is lost, except on the disks to keep",
		},
		{Facts{Verb: "clean", Steps: clean, Mode: inventory.CleanNone, Driver: inventory.Webhook}, "marks {hosts} as clean and wipes nothing; the next machine can read the old data"},
		{
			Facts{Verb: "install", Steps: write, Image: "debian-12", Driver: inventory.Redfish},
			"boots and installs debian-12 on {hosts}; the installation overwrites a disk, and all programs there stop at once",
		},
		{
			Facts{Verb: "install", Steps: write, Image: "debian-12"},
			"installs debian-12 on {hosts}, as soon as somebody starts a boot from the network by hand; the installation overwrites a disk",
		},
		{Facts{Verb: "install", Host: inventory.Host{IsArmed: true}}, "arms {hosts}: the installer overwrites the disks at the next boot from the network"},
		{Facts{Verb: "install"}, "gives {hosts} the profile at the next boot from the network; the disks stay as they are"},
		{Facts{Verb: "power", Action: "cycle", Driver: inventory.Redfish}, "switches {hosts} off and on again at once; all programs there stop"},
		{Facts{Verb: "power", Action: "on"}, "switches {hosts} on, as soon as somebody does that by hand"},
		{Facts{Verb: "protect"}, "ends the protection of {hosts}: Slipway may wipe and install there from then on"},
	} {
		if got := Say(x.f); got != x.want {
			t.Errorf("%+v\n says %q\nwant %q", x.f, got, x.want)
		}
	}
}

func TestEveryVerbSaysWhatWillHappen(t *testing.T) {
	for _, verb := range []string{"accept", "inspect", "install", "maintain", "protect", "cordon", "retain", "adopt", "confirm", "clean", "release", "set", "locate", "delete"} {
		for _, on := range []bool{true, false} {
			if got := Say(Facts{Verb: verb, On: on}); strings.Count(got, Hosts) != 1 {
				t.Errorf("%s, %v: %q", verb, on, got)
			}
		}
	}
	for _, action := range []string{"on", "off", "shutdown", "cycle", "reset"} {
		if got := Say(Facts{Verb: "power", Action: action}); strings.Count(got, Hosts) != 1 {
			t.Errorf("power %s: %q", action, got)
		}
	}
}
