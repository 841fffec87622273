package access

import (
	"context"
	"encoding/json"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/securitykey"
	"slipway.dev/slipway/web/totp"
)

// Sealer seals the second factors of users; it opens them again if it is an Opener too.
type Sealer interface {
	Seal(name string, plain []byte) ([]byte, error)
}

// Opener opens what a Sealer has sealed.
type Opener interface {
	Open(name string, sealed []byte) ([]byte, error)
}

// secondFactors keeps what users have beside their passwords, and checks it.
type secondFactors struct {
	store inventory.Store    // the whole
	box   Sealer             // nil: none can be kept
	from  inventory.UserRole // the least role that needs one, "" for none
	names *tries[string]     // failed codes, by user and known browser
	seal  *seal              // signs the tickets of those that are set up
	now   func() time.Time
}

// factors are what a user has beside the password, as they are sealed in the inventory.
type factors struct {
	Secret   string            `json:"secret,omitempty"`   // of the authenticator app; "" without one
	Used     int64             `json:"used,omitempty"`     // the last step whose code was used
	Recovery []string          `json:"recovery,omitempty"` // hashes of codes that are left
	Keys     []securitykey.Key `json:"keys,omitempty"`
	Answered []answered        `json:"answered,omitempty"` // challenges that a key has signed, for as long as their tickets are good
}

// isNone reports whether nothing is left to log in with beside the password.
func (f *factors) isNone() bool { return f.Secret == "" && len(f.Keys) == 0 }

// useCode checks a code of the app, else a recovery code, and uses it up.
func (f *factors) useCode(code string, now time.Time) (isRight bool) {
	// A code is refused when its step is not after Used: each works once (RFC 6238 section 5.2).
	if f.Secret != "" {
		if at, ok := totp.Check(f.Secret, code, now, f.Used); ok {
			f.Used = at
			return true
		}
	}
	f.Recovery, isRight = totp.UseRecovery(f.Recovery, code)
	return isRight
}

// answered is a challenge that a key has signed. It counts once.
type answered struct {
	Challenge string    `json:"c"`
	At        time.Time `json:"t"`
}

// SealedAs is the name under which the factors of a user are sealed; none of a stored secret has a slash at its start.
func SealedAs(user string) string { return "/second factor/" + user }

// of opens the second factors of a user.
func (s *secondFactors) of(tx inventory.Tx, name string) (u inventory.User, f factors, err error) {
	if u, err = tx.Users().Find(name); err != nil || !u.HasSecondFactor {
		return u, f, err
	}
	// Without the key that opens them no factor can be checked. The login is then refused, and not let through.
	box, canOpen := s.box.(Opener)
	if !canOpen {
		return u, f, errNoKey()
	}
	text, err := box.Open(SealedAs(name), u.SealedFactors)
	if err != nil {
		return u, f, err
	}
	return u, f, json.Unmarshal(text, &f)
}

func (s *secondFactors) save(tx inventory.Tx, user string, f factors) error {
	if f.isNone() {
		return tx.SaveFactors(user, nil) // recovery codes alone are no second factor
	}
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	if s.box == nil {
		return errNoKey()
	}
	sealed, err := s.box.Seal(SealedAs(user), text)
	if err != nil {
		return err
	}
	return tx.SaveFactors(user, sealed)
}

func errNoKey() error {
	return inventory.Errorf(inventory.Unavailable, "this server has no key to keep a second factor with").WithHint("start it with its secret.key")
}

// useCode checks a code of the app or a recovery code, and uses it up.
func (s *secondFactors) useCode(ctx context.Context, user, from, code string) error {
	// The same message for each cause, so that it does not help somebody who guesses.
	e := inventory.Errorf(inventory.Unauthorized, "the code is wrong, was used before, or is no longer good").
		WithHint("wait for the next code of the app, or give a recovery code. An admin can remove the second factor: slipway user second-factor remove %s", user)
	e.Field = "code"
	return s.useFactor(ctx, user, from, func(f *factors) error {
		if !f.useCode(code, s.now()) {
			return e
		}
		return nil
	})
}

// useFactor has use check a second factor, and stores what is left of it. Failures are counted by user, from all addresses
// together: whoever gets here knows the password. A known browser is counted by itself.
func (s *secondFactors) useFactor(ctx context.Context, user, from string, use func(f *factors) error) error {
	key := user + " code " + from
	if err := s.names.allowed(key, "too many wrong codes for this user"); err != nil {
		return err
	}
	var refused error
	err := s.store.Write(ctx, func(tx inventory.Tx) error {
		_, f, err := s.of(tx, user)
		if err != nil {
			return err
		}
		// Nothing is stored after a refusal. The failure is counted below, in memory.
		if refused = use(&f); refused != nil {
			return nil
		}
		return s.save(tx, user, f)
	})
	if err != nil {
		return err
	}
	// An expired ticket or an answer for another site is no guess, and is not counted.
	if inventory.IsKind(refused, inventory.Unauthorized) {
		s.names.failed(key)
	}
	return refused
}

// mustSetUp reports whether a user has to set up a second factor before anything else: the settings or an admin ask for it.
func (s *secondFactors) mustSetUp(u *inventory.User) bool {
	return u.HasPassword && !u.IsExternal() && !u.HasSecondFactor && (u.NeedsSecondFactor || s.from != "" && u.Grants.Highest().Allows(s.from))
}
