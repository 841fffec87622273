package operation

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig/address"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/power"
)

// ParseBMCNetwork reads where an admin says that a controller is: an address or a network; "" for nowhere.
func ParseBMCNetwork(s string) (netip.Prefix, error) {
	if s == "" {
		return netip.Prefix{}, nil
	}
	if p, err := netip.ParsePrefix(s); err == nil {
		return p.Masked(), nil
	}
	a, err := netip.ParseAddr(s)
	if err != nil || a.Zone() != "" {
		return netip.Prefix{}, inventory.Errorf(inventory.Invalid, "%q is neither an address nor a network", inventory.Clean(s, 60)).
			WithHint("write the controller's address, such as 10.1.0.7, or its network, such as 10.1.0.0/16")
	}
	return netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()), nil
}

// controllerHost is the host in the address of a controller, which is a URL, or a host with or without a port.
func controllerHost(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Hostname()
	}
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

// checkBMCAddress looks, before an account is made, whether the address that the agent names may be the host's controller.
// The inspection goes on without the account when nobody has confirmed it.
func (j agentStep) checkBMCAddress() error {
	if j.P.BMCUser == "" {
		return nil
	}
	last, err := j.Tx.FindInspection(j.Host.ID, 0)
	if err != nil {
		return fmt.Errorf("read inspection of %s: %w", j.Host.Name, err)
	}
	if last.Hardware.BMC == nil || last.Hardware.BMC.Address == "" {
		return nil // to connect says that it has none
	}
	b, err := j.Tx.FindBMC(j.Host.ID)
	if err = ledger.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("read controller of %s: %w", j.Host.Name, err)
	}
	why, err := j.doubtsBMC(last.Hardware.BMC.Address, &b)
	if err != nil || why == "" {
		return err
	}
	issue := unconfirmedBMC(&j.Host)
	issue.Cause, issue.Hint = inventory.Clean(why+"; no account was made on it", 500), j.bmcHint(last.Hardware.BMC.Address)
	j.P.BMCUser = ""
	j.op.Params = j.P.Encode()
	if err := j.note(why+"; no account is made on it", map[string]any{"hint": issue.Hint}); err != nil {
		return err
	}
	return j.o.cfg.Ledger.OpenIssue(j.Tx, issue)
}

// unconfirmedBMC is the issue that a host names a controller which nobody has confirmed. The controller in use may be well.
func unconfirmedBMC(h *inventory.Host) inventory.Issue {
	i := power.Unreachable(h, nil)
	i.Key = inventory.IssueBMC + "/address/" + string(h.ID)
	return i
}

func (j agentStep) bmcHint(address string) string {
	return fmt.Sprintf("if that is its controller: slipway host inspect %s --restart --bmc-user NAME --bmc-network %s", j.Host.Name, inventory.Clean(address, 60))
}

// doubtsBMC says why an address that the agent names is not taken for the host's controller, "" when it is. A machine that
// names what it likes would have the server log in elsewhere, and would be fenced by a controller of its own.
func (j agentStep) doubtsBMC(at string, known *inventory.BMC) (string, error) {
	said, err := netip.ParseAddr(at)
	if err != nil {
		return fmt.Sprintf("the agent names %q as its controller, which is no address", inventory.Clean(at, 60)), nil
	}
	said = said.Unmap()
	other, err := j.whoseBMC(said)
	switch {
	case err != nil:
		return "", err
	case other != "":
		j.names(inventory.HostRef(other))
		return fmt.Sprintf("the agent names %s as its controller, and that is the controller of %s", said, other), nil
	}
	var taken *inventory.Error
	err = address.MaySaveBMC(j.Tx, &inventory.BMC{HostID: j.Host.ID, Driver: inventory.IPMI, Address: said.String()})
	switch {
	case errors.As(err, &taken):
		j.names(taken.Refs...)
		return fmt.Sprintf("the agent names %s as its controller: %s", said, taken.Msg), nil
	case err != nil:
		return "", err
	case j.P.BMCNetwork.IsValid() && j.P.BMCNetwork.Contains(said):
		return "", nil
	case j.P.BMCNetwork.IsValid():
		return fmt.Sprintf("the agent names %s as its controller, which is not in %s", said, j.P.BMCNetwork), nil
	case isAt(known, said):
		return "", nil
	case known.HostID != "" && known.Driver != inventory.Manual && known.Driver != inventory.WoL:
		return fmt.Sprintf("the agent names %s as its controller, and the host is powered by %s", said, cmp.Or(controllerHost(known.Address), string(known.Driver))), nil
	}
	before, err := j.Tx.ListInspections(j.Host.ID, 2)
	if err != nil {
		return "", fmt.Errorf("read inspections of %s: %w", j.Host.Name, err)
	}
	if len(before) == 2 && before[1].Hardware.BMC != nil && before[1].Hardware.BMC.Address == at {
		return "", nil // whoever asked for the account could see it
	}
	return fmt.Sprintf("the agent names %s as its controller, and nobody has confirmed that", said), nil
}

func isAt(b *inventory.BMC, a netip.Addr) bool {
	host, err := netip.ParseAddr(controllerHost(b.Address))
	return err == nil && host.Unmap() == a
}

// whoseBMC names another host whose controller has an address, "" for none.
func (j agentStep) whoseBMC(a netip.Addr) (string, error) {
	for after := ""; ; {
		page, err := j.Tx.ListBMCs(inventory.Page{After: after, Limit: power.PollPage})
		if err != nil || len(page) == 0 {
			return "", err
		}
		for _, b := range page {
			after = string(b.HostID)
			if b.HostID == j.Host.ID || !isAt(&b, a) || b.Driver != inventory.Redfish && b.Driver != inventory.IPMI {
				continue
			}
			h, err := j.Tx.FindHost(b.HostID)
			if err != nil {
				return "", fmt.Errorf("read host of the controller at %s: %w", a, err)
			}
			return h.Name, nil
		}
	}
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
