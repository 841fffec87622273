package apply

import (
	"context"
	"fmt"

	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/translate"
)

// lend looks whether a machine could boot with its bootstrap data, lets it boot then, and hands them over when its boot
// asks for them.
func (k *Keeper) lend(ctx context.Context, v *contract.View) error {
	m := &v.Machine
	k.mu.Lock()
	isAsked := k.asked[m.Name]
	k.mu.Unlock()
	isHeld := translate.IsHeld(m) && m.HostID != ""
	// Opening and checking the data costs a read and a decryption; most machines need neither.
	if !isAsked && !isHeld {
		return nil
	}
	owner, err := contract.ParseOwner(m.Owner)
	if err != nil {
		return err
	}
	text, err := k.cfg.Secrets.Open(ctx, translate.DataSecretName(owner, m.BootstrapFrom))
	if isConflict(err) {
		return k.hold(ctx, v, "its bootstrap data are not stored: apply the Secret that it names again")
	}
	if err != nil {
		return fmt.Errorf("open the bootstrap data of %s: %w", m.Name, err)
	}
	data, err := translate.ReadData(text)
	if err != nil {
		return fmt.Errorf("bootstrap data of %s: %w", m.Name, err)
	}
	// A dry run where nobody has asked yet: it only says whether the machine could boot with the data.
	err = k.cfg.Appliance.GiveBootstrap(ctx, m.Name, data, !isAsked)
	if reason := contract.BootstrapReason(err); reason != "" {
		err = k.hold(ctx, v, reason+": "+err.Error())
	} else if err == nil && isHeld {
		err = k.let(ctx, v, "")
	}
	if err == nil && isAsked {
		k.mu.Lock()
		// Not before it has worked: after an error the next round tries again.
		delete(k.asked, m.Name)
		k.mu.Unlock()
	}
	return err
}
