package web

import (
	"fmt"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
)

// hostEdited notes an edit of a host.
func hostEdited(req *rest.Request, change inventory.AuditChange, old any, h inventory.Host) {
	rest.Edited(req, "host", h.Name, change, old, h, h.Version)
	req.Trail.Concern(h.ID)
}

// hostGone notes that a host is forgotten.
func hostGone(req *rest.Request, h inventory.Host) {
	rest.Edited(req, "host", h.Name, inventory.AuditDelete, h, nil, 0)
	req.Trail.Concern(h.ID)
}

// bmcEdited notes an edit of the way to power a host; version 0 is none. What is sealed or hidden cannot be brought back.
func bmcEdited(req *rest.Request, h inventory.Host, old, b inventory.BMC, hasPassword bool) {
	change, version := inventory.AuditUpdate, b.Version
	var before, after any
	if old.Version > 0 {
		before = hostBMC(h.Name, old)
	} else {
		change = inventory.AuditCreate
	}
	if b.Version > 0 {
		after = hostBMC(h.Name, b)
	} else {
		change = inventory.AuditDelete
	}
	rest.Edited(req, "bmc", h.Name, change, before, after, version)
	t := req.Trail
	t.Concern(h.ID)
	if hasPassword {
		t.Say("password set")
	}
	isOther := old.Driver != b.Driver || old.Address != b.Address || old.Username != b.Username
	switch {
	case change == inventory.AuditCreate:
	case hasPassword, len(old.Sealed) > 0 && isOther:
		t.Fix("the password that it had is not kept")
	case hasSecretOption(old, b):
		t.Fix("the option that it had may be a secret and is not kept")
	}
}

// hasSecretOption reports whether a hidden option of old is another in b, or gone.
func hasSecretOption(old, b inventory.BMC) bool {
	for k, v := range old.Options {
		if now, ok := b.Options[k]; isSecretOption(k) && (!ok || now != v || old.Driver != b.Driver || old.Address != b.Address) {
			return true
		}
	}
	return false
}

// subnetBurden says what goes with a subnet.
func subnetBurden(tx inventory.Tx, n inventory.Subnet) (string, error) {
	rows, err := tx.ListReservations(n.Name, inventory.Page{})
	if err != nil || len(rows) == 0 {
		return "", err
	}
	return fmt.Sprintf("%d of its reservations go with it", len(rows)), nil
}

// What inputs ask for, in words.

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

func (in *onInput) Asked() string { return onOff(in.Body.On) }

func (in *installInput) Asked() string {
	if in.Body.Profile == "" {
		return ""
	}
	return "profile " + in.Body.Profile
}

func (in *cleanInput) Asked() string {
	if in.Body.Mode == "" {
		return "quick"
	}
	return string(in.Body.Mode)
}

func (in *powerInput) Asked() string   { return string(in.Body.Action) }
func (in *confirmInput) Asked() string { return "seen to be " + string(in.Body.State) }
func (in *ackInput) Asked() string     { return string(in.Body.Step) + " of " + in.Body.Owner }
func (in *holdInput) Asked() string    { return string(in.Body.Step) + " of " + in.Body.Owner }
func (in *scanInput) Asked() string    { return in.Body.Range }
func (in *mediaInput) Asked() string   { return in.Body.URL }
func (in *bootInput) Asked() string    { return string(in.Body.Device) }

func (in *remediateInput) Asked() string {
	var steps []string
	for _, s := range in.Body.Steps {
		steps = append(steps, string(s))
	}
	return strings.Join(steps, ", ")
}

func (in *userInput) Asked() string {
	if in.Body.Remove {
		return "remove account " + in.Body.User
	}
	return "account " + in.Body.User
}

func (in *deleteMachineInput) Asked() string {
	if in.Force {
		return "forced: neither fenced nor wiped"
	}
	return ""
}
