package inventory

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// checkWanted checks what a machine says beyond its profile. What its Config says is checked by package machineconfig.
func (m *Machine) checkWanted() error {
	where := "machine " + m.Name
	if len(m.KernelArgs) > 64 {
		return Errorf(Invalid, "%s: at most 64 kernel arguments are allowed", where)
	}
	if err := checkArgs(where, m.KernelArgs); err != nil {
		return err
	}
	for field, text := range map[string]string{"image": m.Image, "bootstrapFrom": m.BootstrapFrom} {
		if err := CheckText(where+": "+field, text, 800); err != nil {
			return err
		}
		if strings.ContainsAny(text, "\n\t") {
			return Errorf(Invalid, "%s: %s has more than one line", where, field)
		}
	}
	if err := checkConfigText(where+": config", m.Config); err != nil {
		return err
	}
	return m.Drain.validate(where)
}

func (d *Drain) validate(where string) error {
	if d.Target != "" {
		if err := CheckName("target", d.Target); err != nil {
			return err
		}
	}
	if err := CheckText(where+": drain: node", d.Node, 253); err != nil {
		return err
	}
	if d.Timeout < 0 || d.VolumeTimeout < 0 || d.ForgetTimeout < 0 {
		return Errorf(Invalid, "%s: a timeout of its drain is negative", where).WithHint("0 sets no limit")
	}
	if d.GraceSeconds < -1 || d.GraceSeconds > int((24*time.Hour).Seconds()) {
		return Errorf(Invalid, "%s: graceSeconds of its drain is %d", where, d.GraceSeconds).WithHint("use 1 to 86400; 0 or -1 for each pod's own")
	}
	return nil
}

// IsZero reports whether Slipway empties and forgets no node, and no setting says how.
func (d Drain) IsZero() bool { return d == Drain{} }

// NodeOf is the name of the node on a machine: what its drain says, else the short host name.
func (m *Machine) NodeOf() string {
	if m.Drain.Node != "" {
		return m.Drain.Node
	}
	name, _, _ := strings.Cut(m.Hostname, ".")
	return cmp.Or(name, m.Name)
}

// Drained is what an operation keeps of the node that it empties and forgets, in its Result.
type Drained struct {
	Drain *DrainState `json:"drain,omitempty"`
	// IsForgotten says that the node's object is gone, or was given up.
	IsForgotten bool `json:"isForgotten,omitempty"`
}

// DrainState returns how far the operation has emptied a node; ok is false when it has not begun, or has none.
func (o *Operation) DrainState() (s DrainState, ok bool) {
	var d Drained
	if len(o.Result) == 0 || json.Unmarshal(o.Result, &d) != nil || d.Drain == nil {
		return s, false
	}
	return *d.Drain, true
}

// TakeWanted takes over from in all that people say of a machine, but its name and owner. Hooks that stay keep whether
// they are acknowledged: only their owners acknowledge.
func (m *Machine) TakeWanted(in Machine) {
	m.Profile, m.ProfileRevision, m.Pool, m.Placement, m.Hostname = in.Profile, in.ProfileRevision, in.Pool, in.Placement, in.Hostname
	m.Parameters, m.RootDisk, m.KeepDisks, m.Clean, m.ReleaseAfter = in.Parameters, in.RootDisk, in.KeepDisks, in.Clean, in.ReleaseAfter
	m.Image, m.KernelArgs, m.Config, m.BootstrapFrom, m.Drain = in.Image, in.KernelArgs, in.Config, in.BootstrapFrom, in.Drain
	m.Hooks = KeepAcks(m.Hooks, in.Hooks)
}

// KeepAcks returns hooks with the acknowledgements and reasons of those that were there.
func KeepAcks(old, hooks []Hook) []Hook {
	out := slices.Clone(hooks)
	for i, h := range out {
		out[i].AckedAt, out[i].Reason = time.Time{}, ""
		for _, o := range old {
			if o.Step == h.Step && o.Owner == h.Owner {
				out[i].AckedAt, out[i].Reason = o.AckedAt, o.Reason
			}
		}
	}
	return out
}
