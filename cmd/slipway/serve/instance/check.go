package instance

import (
	"fmt"
	"strings"
	"time"

	"slipway.dev/slipway/cmd/slipway/doctor"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/duty"
)

// drainedFor is after how long a drained instance may have been forgotten.
const drainedFor = 24 * time.Hour

// Checks are the lines of the self-check about the instances, as of the last look. A database with one has none.
func (w *Watch) Checks() []doctor.Check {
	s := w.state()
	if len(s.roster.Peers) < 2 || w.duties.IsAlone() { // rows in a file of SQLite may come from a database that several used
		return nil
	}
	checks := []doctor.Check{aliveCheck(s.roster)}
	if k, ok := versionCheck(s.roster); ok {
		checks = append(checks, k)
	}
	for _, p := range s.roster.Peers {
		if since := s.now.Sub(p.DrainedAt); p.IsDrained && since >= drainedFor {
			detail := fmt.Sprintf("holds no duties: an admin drained it %d hours ago", int(since.Hours()))
			if p.DrainedAt.IsZero() {
				detail = "holds no duties: an admin drained it"
			}
			checks = append(checks, doctor.Check{
				Name: "instance " + p.Name, Status: doctor.Warning, Detail: detail,
				Hint: "after the maintenance: slipway instance undrain " + p.Name,
			})
		}
	}
	for _, c := range s.cutOff {
		checks = append(checks, doctor.Check{
			Name: "instance " + c.Name, Status: doctor.Failed, Detail: "gets no answer from the instance with the engine: " + c.Reason,
			Hint: "open port 8069 between the two machines; slipway instance show lists the links of an instance",
		})
	}
	for _, name := range s.unserved() {
		checks = append(checks, doctor.Check{
			Name: "network " + name, Status: doctor.Warning, Detail: "no live instance has an address in it: its machines get no answer",
			Hint: "start or undrain an instance that is connected to it, or give one an address there: slipway instance list",
		})
	}
	return checks
}

// aliveCheck says how many instances are alive, and which has the engine.
func aliveCheck(r duty.Roster) doctor.Check {
	k := doctor.Check{Name: "instances", Status: doctor.OK}
	var others []string
	leader := "none"
	for _, p := range r.Peers {
		if p.IsLeader {
			leader = p.Name
		}
		if p.Life != duty.Alive {
			others = append(others, p.Name+" is "+string(p.Life))
		}
	}
	k.Detail = fmt.Sprintf("%d of %d are alive; %s has the engine", r.AliveN(), len(r.Peers), leader)
	if len(others) > 0 {
		k.Detail += "; " + strings.Join(others, ", ")
	}
	if r.AliveN() == 1 && !isUnknown(r) {
		k.Status = doctor.Warning
		k.Hint = "nobody takes over if this one dies: start another, or delete those that are gone: slipway instance delete NAME"
	}
	return k
}

// isUnknown reports whether nobody knows yet of an instance whether it is alive.
func isUnknown(r duty.Roster) bool {
	for _, p := range r.Peers {
		if p.Life == duty.Unknown {
			return true
		}
	}
	return false
}

// versionCheck names the versions of live instances, if they differ.
func versionCheck(r duty.Roster) (k doctor.Check, ok bool) {
	var said []string
	versions := map[string]bool{}
	for _, p := range r.Peers {
		if p.Life == duty.Alive {
			versions[p.Version] = true
			said = append(said, p.Name+" "+inventory.Clean(p.Version, 40))
		}
	}
	return doctor.Check{
		Name: "versions", Status: doctor.Warning, Detail: "instances have different versions: " + strings.Join(said, ", "),
		Hint: "finish the update: slipway instance drain NAME, update it, and undrain it",
	}, len(versions) > 1
}
