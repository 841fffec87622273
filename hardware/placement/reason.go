package placement

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"slipway.dev/slipway/hardware"
	"slipway.dev/slipway/inventory"
)

// cause is one thing that keeps hosts out: a phrase about a host, and what to do about it.
type cause struct {
	phrase string
	hint   string // NAME stands for a host
	// isOutside marks hosts that the machine cannot mean: reasons name them last, and no hint is about them if there is another.
	isOutside bool
}

func (c *cause) hintFor(host string) string { return strings.ReplaceAll(c.hint, "NAME", host) }

// The causes that do not depend on the requirements.
var (
	notAccepted    = &cause{phrase: "is not accepted", hint: "accept it with: slipway host accept NAME"}
	claimed        = &cause{phrase: "is claimed by another machine", hint: "add hosts, or delete machines that are not needed: slipway machine list"}
	adopted        = &cause{phrase: "is adopted with an operating system of its own", hint: "end that with: slipway host adopt NAME --off"}
	failed         = &cause{phrase: "has failed and is in quarantine", hint: "see why, and clear it: slipway host show NAME"}
	inMaintenance  = &cause{phrase: "is in maintenance", hint: "end it with: slipway host maintain NAME --off"}
	cordoned       = &cause{phrase: "is cordoned", hint: "end it with: slipway host cordon NAME --off"}
	protected      = &cause{phrase: "is protected", hint: "end it with: slipway host protect NAME --off"}
	dirty          = &cause{phrase: "is not wiped yet", hint: "wipe it with: slipway host clean NAME"}
	faulty         = &cause{phrase: "lacks what its golden hardware has", hint: "see what: slipway host hardware NAME"}
	neverInspected = &cause{phrase: "was never inspected", hint: "inspect it with: slipway host inspect NAME"}
	noDisk         = &cause{phrase: "has no disk to install to", hint: "look for missing drivers and disks to keep: slipway host hardware NAME"}
	noSuchDisk     = &cause{phrase: "has no disk that fits the hint for the root disk", hint: "compare it with: slipway host hardware NAME"}
	ambiguousDisk  = &cause{phrase: "has several disks that fit the hint for the root disk", hint: "say more, such as the serial number: slipway host set NAME --root-serial SERIAL"}
	justTaken      = &cause{phrase: "is given to another machine", hint: "add hosts, or delete machines that are not needed: slipway machine list"}
	avoided        = &cause{phrase: "has failed this machine before", hint: "look at why: slipway host show NAME"}
	notTheSame     = &cause{phrase: "is not the host that the machine had", hint: "wait for that host, or use reuse: prefer-same"}
	held           = &cause{phrase: "is held for the machine that had it", hint: "it is free for all 30 minutes after it was freed"}
	spare          = &cause{phrase: "is kept as a spare of the pool", hint: "add hosts to the pool, or lower its minSpare"}
	otherDomain    = &cause{phrase: "is in another failure domain", hint: "add hosts there, or make the failure domain a preference"}
	notPreferred   = &cause{phrase: "is not preferred"}

	busy = map[inventory.State]*cause{
		inventory.Inspecting: {phrase: "is being inspected", hint: "wait for it: slipway host show NAME"},
		inventory.Installing: {phrase: "is being installed", hint: "wait for it, or release it: slipway host show NAME"},
		inventory.Active:     {phrase: "is in use", hint: "slipway host show NAME says by which machine"},
		inventory.Releasing:  {phrase: "is being released", hint: "wait for it: slipway host show NAME"},
		inventory.Cleaning:   {phrase: "is being wiped", hint: "wait for it: slipway host show NAME"},
	}
)

func isConflict(err error) bool {
	var e *inventory.Error
	return errors.As(err, &e) && e.Kind == inventory.Conflict
}

// invalid is the choice for what cannot be read.
func invalid(err error) Choice {
	c := Choice{Code: InvalidConfiguration, Reason: "no host: " + inventory.Clean(err.Error(), 300)}
	if e, ok := errors.AsType[*inventory.Error](err); ok {
		c.Reason, c.Hint = "no host: "+inventory.Clean(e.Msg, 300), e.Hint
	}
	return c
}

// causesShown bounds a reason; what is left out is counted.
const causesShown = 6

// causesKept bounds the list of rejections: each taint is a cause of its own.
const causesKept = 32

const (
	noHosts     = "no host: there are none"
	noHostsHint = "boot a machine from the network, or add one: slipway host create"
)

// none counts what keeps every host out and puts it into words.
func (y *yard) none(q *query) Choice {
	byPhrase := map[string]*Rejection{}
	for _, e := range y.entries {
		c := q.shape.verdicts.of(e)
		if c == nil {
			c = q.refuses(e)
		}
		r := byPhrase[c.phrase]
		if r == nil {
			r = &Rejection{Cause: c.phrase, Example: e.Host.Name, cause: c}
			byPhrase[c.phrase] = r
		}
		r.N++
		r.Example = min(r.Example, e.Host.Name)
	}
	out := Choice{Code: InsufficientResources, AgainAt: q.heldUntil(y.entries)}
	for _, r := range byPhrase {
		out.Rejected = append(out.Rejected, *r)
	}
	slices.SortFunc(out.Rejected, compareRejections)
	if byPhrase[otherDomain.phrase] != nil {
		out.Code = NoMatchInFailureDomain
	}
	if len(out.Rejected) == 0 {
		out.Reason, out.Hint = noHosts, noHostsHint
		return out
	}
	out.Reason, out.Hint = words(out.Rejected), out.Rejected[0].cause.hintFor(out.Rejected[0].Example)
	out.Rejected = out.Rejected[:min(len(out.Rejected), causesKept)]
	return out
}

// compareRejections puts the most frequent first, and hosts that are not meant at the end.
func compareRejections(a, b Rejection) int {
	switch {
	case a.cause.isOutside != b.cause.isOutside:
		if b.cause.isOutside {
			return -1
		}
		return 1
	case a.N != b.N:
		return b.N - a.N
	}
	return strings.Compare(a.Cause, b.Cause)
}

// words makes a sentence: "no host: 12 have less than 64 GiB of memory, 1 is in maintenance".
func words(all []Rejection) string {
	var parts []string
	rest := 0
	for i, r := range all {
		switch {
		case i >= causesShown:
			rest += r.N
		case r.N == 1:
			parts = append(parts, "1 "+r.Cause)
		default:
			parts = append(parts, fmt.Sprintf("%d %s", r.N, hardware.Plural(r.Cause)))
		}
	}
	if rest > 0 {
		parts = append(parts, fmt.Sprintf("%d for other reasons", rest))
	}
	return "no host: " + strings.Join(parts, ", ")
}
