package provision

import (
	"encoding/json"
	"fmt"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
)

// drawBMCPassword draws the password of the account that the agent is to make. It is stored with the operation, sealed,
// before the agent learns of it.
func (j *job) drawBMCPassword() error {
	password, err := newPassword()
	if err != nil {
		return err
	}
	sealed, err := j.e.cfg.Sealer.Seal(bmcSecret(j.host.ID), []byte(password))
	if err != nil {
		return fmt.Errorf("seal password: %w", err)
	}
	j.op.Result, err = json.Marshal(sealed)
	return err
}

func (j *job) bmcPassword() (string, error) {
	var sealed []byte
	if err := json.Unmarshal(j.op.Result, &sealed); err != nil {
		return "", fmt.Errorf("read password of operation %s: %w", j.op.ID, err)
	}
	plain, err := j.e.cfg.Secrets.Open(bmcSecret(j.host.ID), sealed)
	return string(plain), err
}

// connect makes the controller, on which the agent has just made an account, the way to power the host; stop says that
// the operation has ended with it.
func (j *job) connect() (stop bool, err error) {
	last, err := j.tx.FindInspection(j.host.ID, 0)
	if err != nil {
		return true, fmt.Errorf("read inspection of %s: %w", j.host.Name, err)
	}
	facts := last.Hardware.BMC
	if facts == nil || facts.Address == "" || facts.Address == "0.0.0.0" {
		return true, j.fail(failure{
			reason: "an account was made on the controller, and the controller has no address", isLasting: true,
			hint: "connect its port, give it an address, and inspect the host again",
		})
	}
	b, err := j.tx.FindBMC(j.host.ID)
	if err = ledger.IgnoreNotFound(err); err != nil {
		return true, fmt.Errorf("read controller of %s: %w", j.host.Name, err)
	}
	why, err := j.doubtsBMC(facts.Address, &b)
	if err != nil {
		return true, err
	}
	if why != "" {
		return true, j.fail(failure{reason: why, hint: j.bmcHint(facts.Address), isLasting: true})
	}
	isSame := b.Driver == inventory.IPMI && b.Address == facts.Address && b.Username == j.p.BMCUser
	switch {
	case !isSame:
		b.Others = nil
	case len(b.Sealed) > 0: // kept until the new one has let us in
		b.Others = keepOther(b.Others, inventory.OtherPassword{Sealed: b.Sealed, At: j.e.cfg.Now()})
	}
	b.HostID, b.Driver, b.Address, b.Username, b.MAC = j.host.ID, inventory.IPMI, facts.Address, j.p.BMCUser, facts.MAC
	b.System, b.Options, b.Power, b.IsReachable, b.Reason = "", nil, inventory.PowerUnknown, false, "not asked yet"
	if err := json.Unmarshal(j.op.Result, &b.Sealed); err != nil {
		return true, fmt.Errorf("read password of operation %s: %w", j.op.ID, err)
	}
	j.op.Result = nil
	if err := j.tx.SaveBMC(&b, j.e.cfg.Now()); err != nil {
		return true, err
	}
	if err := j.e.ledger.CloseIssue(j.tx, unconfirmedBMC(&j.host), "its controller is connected"); err != nil {
		return true, err
	}
	j.e.polls.soon(j.host.ID)
	return false, j.note(fmt.Sprintf("account %s was made on the controller at %s; the host is powered by it", j.p.BMCUser, facts.Address), nil)
}
