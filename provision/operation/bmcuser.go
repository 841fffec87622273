package operation

import (
	"encoding/json"
	"fmt"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/power"
)

// drawBMCPassword draws the password of the account that the agent is to make. It is stored with the operation, sealed,
// before the agent learns of it.
func (j agentStep) drawBMCPassword() error {
	password, err := power.NewPassword()
	if err != nil {
		return err
	}
	sealed, err := j.o.cfg.Power.Seal(j.Host.ID, password)
	if err != nil {
		return fmt.Errorf("seal password: %w", err)
	}
	j.op.Result, err = json.Marshal(sealed)
	return err
}

func (j agentStep) bmcPassword() (string, error) {
	var sealed []byte
	if err := json.Unmarshal(j.op.Result, &sealed); err != nil {
		return "", fmt.Errorf("read password of operation %s: %w", j.op.ID, err)
	}
	plain, err := j.o.cfg.Power.Unseal(j.Host.ID, sealed)
	return string(plain), err
}

// connect makes the controller, on which the agent has just made an account, the way to power the host; stop says that
// the operation has ended with it.
func (j agentStep) connect() (stop bool, err error) {
	last, err := j.Tx.FindInspection(j.Host.ID, 0)
	if err != nil {
		return true, fmt.Errorf("read inspection of %s: %w", j.Host.Name, err)
	}
	facts := last.Hardware.BMC
	if facts == nil || facts.Address == "" || facts.Address == "0.0.0.0" {
		return true, j.fail(failure{
			reason: "an account was made on the controller, and the controller has no address", isLasting: true,
			hint: "connect its port, give it an address, and inspect the host again",
		})
	}
	b, err := j.Tx.FindBMC(j.Host.ID)
	if err = ledger.IgnoreNotFound(err); err != nil {
		return true, fmt.Errorf("read controller of %s: %w", j.Host.Name, err)
	}
	why, err := j.doubtsBMC(facts.Address, &b)
	if err != nil {
		return true, err
	}
	if why != "" {
		return true, j.fail(failure{reason: why, hint: j.bmcHint(facts.Address), isLasting: true})
	}
	isSame := b.Driver == inventory.IPMI && b.Address == facts.Address && b.Username == j.P.BMCUser
	switch {
	case !isSame:
		b.Others = nil
	case len(b.Sealed) > 0: // kept until the new one has let us in
		b.Others = power.KeepOther(b.Others, inventory.OtherPassword{Sealed: b.Sealed, At: j.o.cfg.Now()})
	}
	b.HostID, b.Driver, b.Address, b.Username, b.MAC = j.Host.ID, inventory.IPMI, facts.Address, j.P.BMCUser, facts.MAC
	b.System, b.Options, b.Power, b.IsReachable, b.Reason = "", nil, inventory.PowerUnknown, false, "not asked yet"
	if err := json.Unmarshal(j.op.Result, &b.Sealed); err != nil {
		return true, fmt.Errorf("read password of operation %s: %w", j.op.ID, err)
	}
	j.op.Result = nil
	if err := j.Tx.SaveBMC(&b, j.o.cfg.Now()); err != nil {
		return true, err
	}
	if err := j.o.cfg.Ledger.CloseIssue(j.Tx, unconfirmedBMC(&j.Host), "its controller is connected"); err != nil {
		return true, err
	}
	j.o.cfg.Power.Polls.Soon(j.Host.ID)
	return false, j.note(fmt.Sprintf("account %s was made on the controller at %s; the host is powered by it", j.P.BMCUser, facts.Address), nil)
}
