package foresight

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/noun"
)

// Thing is something other than a host, with what of it is counted.
type Thing struct {
	Noun string         // in the singular
	Name string         // of this one
	N    map[string]int // by the word in the singular, such as reservation
	// How narrows it down: the scope of a layer, disable of a user, purge of a cluster. "" for the plain deletion.
	How string
}

// things are the sentences of deletions, and of what else takes something away. In braces stand the name and counts. The
// sentences of plain nouns are in the table of package noun.
var things = map[string]string{
	"reservation":  "{name} is not reserved any more; the machine keeps it until its lease ends, and then another machine may get it",
	"lease":        "{name} is free for the next machine that asks; if a machine still uses it, two machines may have the same address",
	"user disable": "user {name} cannot log in; {login} and {token} stop working until somebody enables the user again; nothing is lost",
	"token":        "Slipway refuses every program that uses token {name} from now on; nobody can bring the token back",
	"cluster force": "objects of cluster {name} have no effect here any more; {machine} of it stay here with their hosts and systems, until somebody " +
		"deletes them here; Slipway does not call the cluster, so its objects keep Slipway's finalizers, and nobody can delete them",
	"cluster purge": "Slipway deletes its custom resource definitions and all their objects in cluster {name}, and nobody can undo that; {machine} of it " +
		"stay here with their hosts and systems, until somebody deletes them here",
	"bmc":     "Slipway deletes the controller of {name} with its password; from then on a person has to switch the power by hand",
	"address": "{name} is free, and the next machine may get it",
}

var countRE = regexp.MustCompile(`\{[a-z]+\}`)

// Delete returns what will happen to a thing; it is "" for a noun that no table has.
func Delete(t Thing) string {
	text := cmp.Or(things[t.Noun+" "+t.How], things[t.Noun], noun.Gone(t.Noun))
	return countRE.ReplaceAllStringFunc(text, func(w string) string {
		word := w[1 : len(w)-1]
		if word == "name" {
			return t.Name
		}
		return plural(t.N[word], word)
	})
}

func plural(n int, word string) string {
	switch n {
	case 0:
		return "no " + word
	case 1:
		return "1 " + word
	}
	return strconv.Itoa(n) + " " + word + "s"
}

// Ending is a request about a machine, and the facts of it and its host that decide what happens.
type Ending struct {
	Verb string // delete, force, reinstall, power-cycle, replace
	Name string
	Host string // "" for none
	// IsGoing says that it is being deleted already.
	IsGoing, IsAdopted bool
	Driver             inventory.BMCDriver
	Mode               inventory.CleanMode
	// StaysDirty says that the host is not free before somebody wipes it.
	StaysDirty bool
	KeepN      int // disks that are never wiped
	AddressN   int // static addresses that are kept for it
	Node       string
	Image      string
}

// End returns what will happen to a machine, its host, its disks and its addresses.
func End(e Ending) string {
	switch {
	case e.Host == "" && (e.Verb == "delete" || e.Verb == "force"):
		return fmt.Sprintf("machine %s is deleted; it has no host, so Slipway switches nothing off and wipes nothing%s", e.Name, e.addresses())
	case e.Host == "":
		return fmt.Sprintf("nothing: machine %s has no host yet", e.Name)
	}
	if e.IsAdopted && (e.Verb == "delete" || e.Verb == "force") {
		return fmt.Sprintf("machine %s is forgotten; host %s is adopted, so Slipway switches nothing off and wipes nothing, and its system continues to run", e.Name, e.Host)
	}
	off := "switches off host " + e.Host
	if e.Driver == "" || e.Driver == inventory.Manual {
		off = "asks somebody to switch off host " + e.Host + " by hand"
	}
	switch e.Verb {
	case "force":
		return fmt.Sprintf("Slipway quarantines host %s without a fence and without a wipe: the old system may still run; the addresses of machine %s stay "+
			"with the host until a wipe", e.Host, e.Name)
	case "reinstall":
		return fmt.Sprintf("restarts host %s and installs %s on it again; that overwrites the data on its disks%s; the machine keeps its host and its addresses",
			e.Host, e.Image, e.kept())
	case "power-cycle":
		return fmt.Sprintf("switches host %s off and on again at once; all programs there stop, and its disks stay as they are", e.Host)
	case "replace":
		return fmt.Sprintf("%s, takes it away from machine %s, wipes it and looks for another host; all data on its disks is lost%s", off, e.Name, e.kept())
	}
	return e.deletion(off)
}

// deletion tells the whole way of a machine that is deleted with a host of ours.
func (e *Ending) deletion(off string) string {
	text := off
	if e.Node != "" {
		text = "drains and deletes node " + e.Node + ", " + text
	}
	if e.IsGoing {
		text = "it is being deleted already: continues that: " + text
	}
	switch {
	case e.Mode == inventory.CleanNone && e.StaysDirty:
		return text + "; its disks stay as they are, and no other machine takes the host before somebody wipes it" + e.addresses()
	case e.Mode == inventory.CleanNone:
		return text + " and makes it free with its disks as they are; the next machine can read the old data" + e.addresses()
	}
	return fmt.Sprintf("%s, wipes it (%s)%s and makes it free; all data on its disks is lost%s", text, modeOr(e.Mode), e.kept(), e.addresses())
}

func (e *Ending) kept() string {
	if e.KeepN == 0 {
		return ""
	}
	return ", but for " + plural(e.KeepN, "disk") + " to keep"
}

func (e *Ending) addresses() string {
	if e.AddressN == 0 {
		return ""
	}
	is := "es are"
	if e.AddressN == 1 {
		is = " is"
	}
	return fmt.Sprintf("; %d static address%s free again", e.AddressN, is)
}
