package trouble

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/cmd/slipway/doctor"
	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
)

// Conditions returns the issues of what was found.
func Conditions(h *Health) (all []inventory.Issue) {
	if k := doctor.DataDir(h.Disk); k.Status == doctor.Failed || k.Status == doctor.Warning && h.Disk.FreeBytes < tightBytes {
		i := inventory.Issue{Key: inventory.IssueDisk, Type: inventory.IssueDisk, Severity: inventory.SeverityWarning, Cause: "data directory " + k.Detail, Hint: k.Hint}
		if k.Status == doctor.Failed {
			i.Severity = inventory.SeverityError
		}
		if h.Reserve > 0 {
			i.Severity = inventory.SeverityError
			i.Cause += fmt.Sprintf("; the reserve of %d MiB was given up, so that leases are still stored; events are not", h.Reserve>>20)
		}
		all = append(all, i)
	}
	all = append(all, databaseIssues(h)...)
	all = append(all, instanceIssues(h)...)
	if i, ok := clockWrong(h); ok {
		all = append(all, i)
	} else if h.Leap != 0 && !asksDatabase(h) {
		all = append(all, inventory.Issue{
			Key: inventory.IssueClock, Type: inventory.IssueClock, Severity: inventory.SeverityWarning,
			Cause: "the clock was set by " + h.Leap.Round(time.Second).String() + ": leases, deadlines and tokens end by the new time",
			Hint:  "timedatectl shows who keeps it; set back, or right for an hour, this closes",
		})
	}
	return slices.Concat(all, shedIssues(h), filesIssues(h.Files), interfaceIssues(h), artefactIssues(h.Faults), checkIssues(h.Checks),
		aloneIssues(h.Alone))
}

func interfaceIssues(h *Health) (all []inventory.Issue) {
	for _, i := range h.Interfaces {
		k := doctor.JudgeInterface(i, nil)
		switch {
		case i.Err != nil:
			continue // nothing is known of it
		case !i.IsThere:
			k.Hint = "make it again, or serve others: slipway serve --interface NAME"
		case !i.IsUp:
			k.Detail, k.Hint = "is down", "ip link set "+i.Name+" up"
		case len(i.Prefixes) == 0 && h.Only6[i.Name]:
			continue
		case len(i.Prefixes) == 0:
		case slices.Contains(h.Unserved, i.Name):
			k.Detail = "has the address " + i.Prefixes[0].String() + ", which is in no subnet"
			k.Hint = "slipway subnet create NAME --cidr " + i.Prefixes[0].Masked().String() + " --interface " + i.Name + " --mode full, then: slipway range add; or give it its old address"
		case !i.HasLink:
		default:
			continue
		}
		severity := inventory.SeverityError
		if k.Status == doctor.Warning {
			severity = inventory.SeverityWarning
		}
		all = append(all, inventory.Issue{
			Key: inventory.IssueInterface + "/" + i.Name, Type: inventory.IssueInterface, Severity: severity,
			Cause: "nobody is answered on interface " + i.Name + ": " + k.Detail, Hint: k.Hint,
		})
	}
	for _, s := range h.Missing6 {
		if slices.ContainsFunc(h.Interfaces, func(i doctor.Interface) bool { return i.Name == s.Interface && i.IsThere && i.IsUp }) {
			all = append(all, inventory.Issue{
				Key: inventory.IssueInterface + "/" + s.Interface + "/" + s.Name, Type: inventory.IssueInterface, Severity: inventory.SeverityError,
				Cause: "nobody boots over IPv6 on interface " + s.Interface + ": it has no address in " + s.CIDR.String() + ", subnet " + s.Name,
				Hint:  "give it its address back, or one such as this: ip addr add " + netip.PrefixFrom(s.CIDR.Masked().Addr().Next(), s.CIDR.Bits()).String() + " dev " + s.Interface,
			})
		}
	}
	return all
}

func artefactIssues(faults []images.Fault) (all []inventory.Issue) {
	if more := len(faults) - faultsAtMost; more > 0 {
		all = append(all, inventory.Issue{
			Key: inventory.IssueArtefact + "/more", Type: inventory.IssueArtefact, Severity: inventory.SeverityError,
			Cause: fmt.Sprintf("%d more artefacts are missing or damaged: the disk of the artefact folder may be failing", more), Hint: "slipway artefact verify lists all of them",
		})
	}
	for _, f := range faults[:min(len(faults), faultsAtMost)] {
		all = append(all, inventory.Issue{
			Key: inventory.IssueArtefact + "/" + string(f.Digest), Type: inventory.IssueArtefact, Severity: inventory.SeverityError,
			Cause: inventory.Clean(fmt.Sprintf("artefact %s is %s; images that need it: %s", f.Digest, f.Problem, strings.Join(f.Images, ", ")), CauseAtMost), Hint: f.Hint,
		})
	}
	return all
}

// checkIssues are the faults that the self-check finds, too. A warning about a port is no issue: nothing is served there yet.
func checkIssues(by map[string][]doctor.Check) (all []inventory.Issue) {
	for _, kind := range slices.Sorted(maps.Keys(by)) {
		for _, k := range by[kind] {
			i := inventory.Issue{
				Key: kind + "/" + strings.ReplaceAll(k.Name, " ", "-"), Type: kind, Severity: inventory.SeverityError,
				Cause: inventory.Clean(k.Name+": "+k.Detail, CauseAtMost), Hint: k.Hint,
			}
			switch {
			case k.Status == doctor.OK, k.Status == doctor.Warning && kind == inventory.IssuePort:
				continue
			case k.Status == doctor.Warning:
				i.Severity = inventory.SeverityWarning
			}
			if kind == inventory.IssueLoader { // it is read at the start
				i.Hint += "; then start the server again"
			}
			all = append(all, i)
		}
	}
	return all
}

// shedIssues is the issue that something was not stored.
func shedIssues(h *Health) []inventory.Issue {
	if h.ShedAt.IsZero() {
		return nil
	}
	var what []string
	for _, s := range []struct {
		n    uint64
		what string
	}{
		{h.Shed.OverBudget, "events and reports of machines that sent more than is kept of one"},
		{h.Shed.HostN, "machines that nobody has accepted, which are not listed"},
		{h.Shed.DiskFull, "events, because the disk is nearly full"},
		{h.Shed.QueueFull, "events, because the disk or the database was too slow"},
	} {
		if s.n > 0 {
			what = append(what, fmt.Sprintf("%d %s", s.n, s.what))
		}
	}
	return []inventory.Issue{{
		Key: inventory.IssueShed, Type: inventory.IssueShed, Severity: inventory.SeverityWarning,
		Cause: "not stored since the start: " + strings.Join(what, "; "),
		Hint:  "Slipway still stores leases and changes of hosts. slipway host list --state discovered shows machines that flood, and option 82 their switch ports",
	}}
}
