package keys

import (
	"encoding/base64"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/join"
	"slipway.dev/slipway/provision/power"
	"slipway.dev/slipway/web/access"
)

// sealedText is something that the database has sealed, with the name that is bound into the seal.
type sealedText struct {
	name string
	text []byte
}

// sealedIn returns what the database has sealed, apart from the keys of the site. An old database has no fingerprint, and is asked once.
func sealedIn(tx inventory.Tx) (all []sealedText, err error) {
	secrets, err := tx.Secrets().List(inventory.Page{})
	if err != nil {
		return nil, err
	}
	for _, s := range secrets {
		if s, err = tx.Secrets().Find(s.Name); err != nil { // a list leaves the sealed text out
			return nil, err
		}
		all = append(all, sealedText{s.Name, s.Sealed})
	}
	controllers, err := tx.ListBMCs(inventory.Page{})
	if err != nil {
		return nil, err
	}
	for _, b := range controllers {
		name := power.SecretName(b.HostID)
		if len(b.Sealed) > 0 {
			all = append(all, sealedText{name, b.Sealed})
		}
		for option, v := range b.Options {
			text, isSealed := strings.CutPrefix(v, power.SealedMark)
			if sealed, err := base64.StdEncoding.DecodeString(text); isSealed && err == nil {
				all = append(all, sealedText{name + "/" + option, sealed})
			}
		}
	}
	users, err := tx.Users().List(inventory.Page{})
	if err != nil {
		return nil, err
	}
	for _, u := range users {
		if len(u.SealedFactors) > 0 {
			all = append(all, sealedText{access.SealedAs(u.Name), u.SealedFactors})
		}
	}
	tokens, err := tx.ListJoinTokens("")
	if err != nil {
		return nil, err
	}
	for _, t := range tokens {
		if len(t.Sealed) > 0 {
			all = append(all, sealedText{join.SealedAs(t.ID), t.Sealed})
		}
	}
	return all, nil
}
