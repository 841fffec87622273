package provision

import (
	"context"
	"encoding/base64"
	"maps"
	"strings"

	"slipway.dev/slipway/inventory"
)

// sealedMark begins the value of an option that is stored sealed.
const sealedMark = "sealed:"

// sealOptions seals the options of a BMC that may hold secrets. What is sealed already stays.
func (e *Engine) sealOptions(b *inventory.BMC) error {
	b.Options = maps.Clone(b.Options)
	for k, v := range b.Options {
		if !inventory.IsSecretOption(k) || v == "" || strings.HasPrefix(v, sealedMark) {
			continue
		}
		sealed, err := e.cfg.Sealer.Seal(bmcSecret(b.HostID)+"/"+k, []byte(v))
		if err != nil {
			return err
		}
		b.Options[k] = sealedMark + base64.StdEncoding.EncodeToString(sealed)
	}
	return nil
}

// openedOptions returns a BMC with its options in clear, for its driver.
func (e *Engine) openedOptions(b inventory.BMC) (inventory.BMC, error) {
	b.Options = maps.Clone(b.Options)
	for k, v := range b.Options {
		text, isSealed := strings.CutPrefix(v, sealedMark)
		if !isSealed || !inventory.IsSecretOption(k) {
			continue
		}
		sealed, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return b, inventory.Errorf(inventory.Invalid, "option %s of the BMC begins with %s and is not sealed", inventory.Clean(k, 80), sealedMark).WithHint("give the value again")
		}
		plain, err := e.cfg.Secrets.Open(bmcSecret(b.HostID)+"/"+k, sealed)
		if err != nil {
			return b, err
		}
		b.Options[k] = string(plain)
	}
	return b, nil
}

// sealOldOptions seals what an older Slipway has stored in clear.
func (e *Engine) sealOldOptions(ctx context.Context) error {
	if e.cfg.Sealer == nil {
		return nil
	}
	return e.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		all, err := tx.ListBMCs(inventory.Page{})
		if err != nil {
			return err
		}
		for _, b := range all {
			was := b.Options
			if err := e.sealOptions(&b); err != nil {
				return err
			}
			if maps.Equal(was, b.Options) {
				continue
			}
			if err := tx.SaveBMC(&b, e.cfg.Now()); err != nil {
				return err
			}
		}
		return nil
	})
}
