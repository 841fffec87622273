// Package foresight owns the words for what will happen to hosts: every dialog and every dry run takes them from here. It is pure:
// the engine tries the deed, undoes it, and says what would have begun.
package foresight

import (
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
)

// Hosts stands for the hosts of a sentence: the program that shows it puts their number or name there.
const Hosts = "{hosts}"

// Facts are the request, and the facts of one host after a trial.
type Facts struct {
	Verb    string
	On      bool                // of verbs that switch something
	Action  string              // of power
	Mode    inventory.CleanMode // of clean
	Profile string              // of install and set
	// Host is as it would be stored, its zero value of verbs that the engine does not try.
	Host inventory.Host
	// Steps are those of the operation that would begin, nil for none; Image is what it installs, BurnInFor how long it loads the
	// machine.
	Steps     []inventory.Step
	Image     string
	BurnInFor inventory.Duration
	// Driver is how the host is powered, "" by hand.
	Driver     inventory.BMCDriver
	IsHere     bool // our agent runs on it, or it waits for what it is to boot
	Runs       bool // something else runs on it
	MayRestart bool
}

// static are the sentences of verbs that begin nothing.
var static = map[string]string{
	"maintain on":    "puts {hosts} into maintenance: the own disk boots, and every operation waits",
	"maintain off":   "ends the maintenance of {hosts}: waiting operations continue, and a machine may claim and install there again",
	"protect on":     "protects {hosts}: Slipway wipes and installs nothing there",
	"protect off":    "ends the protection of {hosts}: Slipway may wipe and install there from then on",
	"cordon on":      "cordons {hosts}: no new machine can claim there, and everything else continues",
	"cordon off":     "ends the cordon of {hosts}: machines may claim there again",
	"retain on":      "keeps the disks of {hosts} as they are after the deletion of a machine",
	"retain off":     "from now on, wipes the disks of {hosts} after the deletion of a machine",
	"adopt on":       "adopts {hosts}: every boot goes to the own disk, and Slipway starts nothing there",
	"adopt off":      "ends the adoption of {hosts}: Slipway may wipe and install there from then on",
	"locate on":      "lights the identify LED of {hosts}",
	"locate off":     "switches the identify LED of {hosts} off",
	"confirm":        "gives the secrets of {hosts} to the machine that boots there now, or next within an hour",
	"set":            "changes the stored data of {hosts}, and restarts nothing",
	"delete":         "deletes all data about {hosts}; a machine that boots again is a new, unaccepted host",
	"release":        "ends the operation and the quarantine of {hosts}, so that a machine may claim there; switches nothing off and wipes nothing",
	"power on":       "switches {hosts} on",
	"power off":      "switches {hosts} off at once; all programs there stop",
	"power shutdown": "asks the systems of {hosts} to shut down",
	"power cycle":    "switches {hosts} off and on again at once; all programs there stop",
	"power reset":    "resets {hosts} at once; their systems restart",
}

// Say returns what will happen, with Hosts for the hosts.
func Say(f Facts) string {
	switch f.Verb {
	case "accept", "inspect", "install", "clean":
		return f.begins()
	case "power":
		text := static["power "+f.Action]
		if f.byHand() {
			text += ", as soon as somebody does that by hand"
		}
		return text
	case "confirm", "set", "delete", "release":
		return static[f.Verb]
	}
	return static[f.Verb+" "+map[bool]string{true: "on", false: "off"}[f.On]]
}

// byHand reports whether a person switches the host.
func (f *Facts) byHand() bool { return f.Driver == "" || f.Driver == inventory.Manual }

// begins is the sentence of a verb that begins an operation, or only changes what the next boot gets.
func (f *Facts) begins() string {
	switch {
	case f.Verb == "clean" && f.Mode == inventory.CleanNone:
		return "marks {hosts} as clean and wipes nothing; the next machine can read the old data"
	case len(f.Steps) > 0:
		return f.steps()
	case f.Verb == "accept":
		return "accepts {hosts}; Slipway boots nothing there now"
	case f.Verb == "install" && f.Host.IsArmed:
		return "arms {hosts}: the installer overwrites the disks at the next boot from the network"
	case f.Verb == "install":
		return "gives {hosts} the profile at the next boot from the network; the disks stay as they are"
	}
	return f.Verb + "s {hosts}"
}

// steps tells an operation by its steps.
func (f *Facts) steps() string {
	has := func(s inventory.Step) bool { return slices.Contains(f.Steps, s) }
	var does []string
	add := func(is bool, what string) {
		if is {
			does = append(does, what)
		}
	}
	waits := f.byHand() && !f.IsHere
	isLater := !waits && f.Runs && has(inventory.StepInspect) && !f.MayRestart
	if waits {
		isLater = true
	}
	add(has(inventory.StepFence) && !f.byHand(), "switches off")
	add(has(inventory.StepPower) && !isLater, "boots")
	add(has(inventory.StepInspect), "inspects")
	add(has(inventory.StepBMCUser), "makes an account on the controller of")
	add(has(inventory.StepBurnIn) && f.BurnInFor > 0, "burns in for "+f.BurnInFor.String())
	add(has(inventory.StepWipe), "wipes ("+string(modeOr(f.Mode))+")")
	add(has(inventory.StepWrite) || f.Image != "", "installs "+f.Image+" on")
	add(has(inventory.StepRest) && !f.byHand(), "powers off")
	text := list(does) + " " + Hosts
	switch {
	case waits:
		text += ", as soon as somebody starts a boot from the network by hand"
	case isLater:
		text += " at the next boot from the network; Slipway restarts nothing before that"
	}
	switch {
	case has(inventory.StepWipe):
		text += "; all data on the disks is lost, except on the disks to keep"
	case has(inventory.StepWrite):
		text += "; the installation overwrites a disk"
		if !waits {
			text += ", and all programs there stop at once"
		}
	}
	return text
}

func modeOr(m inventory.CleanMode) inventory.CleanMode {
	if m == "" {
		return inventory.CleanQuick
	}
	return m
}

// list joins words as a sentence does.
func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}
