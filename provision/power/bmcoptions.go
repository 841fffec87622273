package power

import (
	"context"
	"encoding/base64"
	"maps"
	"strings"

	"slipway.dev/slipway/inventory"
)

// SealedMark begins the value of an option that is stored sealed.
const SealedMark = "sealed:"

// SealOptions seals the options of a BMC that may hold secrets. A sealed value stays.
func (c *Controllers) SealOptions(b *inventory.BMC) error {
	b.Options = maps.Clone(b.Options)
	for k, v := range b.Options {
		if !inventory.IsSecretOption(k) || v == "" || strings.HasPrefix(v, SealedMark) {
			continue
		}
		// Each option has a name of its own for the seal: one sealed value cannot be put in another's place.
		sealed, err := c.cfg.Sealer.Seal(SecretName(b.HostID)+"/"+k, []byte(v))
		if err != nil {
			return err
		}
		b.Options[k] = SealedMark + base64.StdEncoding.EncodeToString(sealed)
	}
	return nil
}

// OpenedOptions returns a BMC with its options in clear, for its driver.
func (c *Controllers) OpenedOptions(b inventory.BMC) (inventory.BMC, error) {
	b.Options = maps.Clone(b.Options)
	for k, v := range b.Options {
		text, isSealed := strings.CutPrefix(v, SealedMark)
		if !isSealed || !inventory.IsSecretOption(k) {
			continue
		}
		sealed, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return b, inventory.Errorf(inventory.Invalid, "option %s of the BMC begins with %s and is not sealed", inventory.Clean(k, 80), SealedMark).WithHint("give the value again")
		}
		plain, err := c.cfg.Secrets.Open(SecretName(b.HostID)+"/"+k, sealed)
		if err != nil {
			return b, err
		}
		b.Options[k] = string(plain)
	}
	return b, nil
}

// SealOldOptions seals what an older Slipway has stored in clear.
func (c *Controllers) SealOldOptions(ctx context.Context) error {
	if c.cfg.Sealer == nil {
		return nil
	}
	return c.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		all, err := tx.ListBMCs(inventory.Page{})
		if err != nil {
			return err
		}
		for _, b := range all {
			was := b.Options
			if err := c.SealOptions(&b); err != nil {
				return err
			}
			if maps.Equal(was, b.Options) {
				continue
			}
			if err := tx.SaveBMC(&b, c.cfg.Now()); err != nil {
				return err
			}
		}
		return nil
	})
}
