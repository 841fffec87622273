package totp

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

// The vectors are those of RFC 6238, appendix B, for SHA-1; their last six digits are codes of six digits.
func TestTheCodesAreThoseOfTheStandard(t *testing.T) {
	secret := base.EncodeToString([]byte("12345678901234567890"))
	for at, want := range map[int64]string{59: "94287082", 1111111109: "07081804", 1111111111: "14050471", 1234567890: "89005924", 2000000000: "69279037", 20000000000: "65353130"} {
		if step, ok := Check(secret, want[2:], time.Unix(at, 0), 0); !ok || step != at/30 {
			t.Errorf("at %d the code %s is refused (step %d)", at, want[2:], step)
		}
	}
}

func TestACodeIsGoodOnceAndForAShortTime(t *testing.T) {
	secret, now := NewSecret(), time.Unix(1_800_000_000, 0)
	key, _ := base.DecodeString(secret)
	given := code(key, now.Unix()/30)
	for after, want := range map[time.Duration]bool{0: true, 30 * time.Second: true, 59 * time.Second: true, time.Minute: false, -30 * time.Second: true, -time.Minute: false} {
		if _, ok := Check(secret, given, now.Add(after), 0); ok != want {
			t.Errorf("%s later: %v", after, ok)
		}
	}
	at, ok := Check(secret, given[:3]+" "+given[3:], now, 0)
	if !ok {
		t.Error("with a space in the middle it is refused")
	}
	if _, again := Check(secret, given, now, at); again {
		t.Error("it is good twice")
	}
	for _, bad := range []string{"", "12345", "1234567", "abcdef", strings.Repeat("1", 1000)} {
		if _, ok := Check(secret, bad, now, 0); ok {
			t.Errorf("%q is good", bad)
		}
	}
	if _, ok := Check("no base32!", given, now, 0); ok {
		t.Error("without a secret it is good")
	}
}

func TestARecoveryCodeIsGoodOnce(t *testing.T) {
	codes, left := NewRecovery()
	if len(codes) != RecoveryN || len(left) != RecoveryN {
		t.Fatal(len(codes), len(left))
	}
	rest, ok := UseRecovery(left, strings.ToUpper(strings.ReplaceAll(codes[3], "-", " ")))
	if !ok || len(rest) != RecoveryN-1 || len(left) != RecoveryN {
		t.Fatalf("%v, %d left", ok, len(rest))
	}
	if _, again := UseRecovery(rest, codes[3]); again {
		t.Error("it is good twice")
	}
	if _, ok := UseRecovery(rest, "aaaa-bbbb-cccc-dddd"); ok {
		t.Error("another is good")
	}
}

func TestAnAppReadsTheURL(t *testing.T) {
	u, err := url.Parse(URL("ABC", "Slipway rack 1", "anna"))
	if err != nil || u.Scheme != "otpauth" || u.Host != "totp" || u.Path != "/Slipway rack 1:anna" || u.Query().Get("secret") != "ABC" || u.Query().Get("issuer") != "Slipway rack 1" || strings.Contains(u.String(), "+") {
		t.Errorf("%s, %v", u, err)
	}
}

func FuzzCheck(f *testing.F) {
	f.Add("GEZDGNBVGY3TQOJQ", "123456", int64(59))
	f.Fuzz(func(t *testing.T, secret, given string, at int64) {
		if step, ok := Check(secret, given, time.Unix(at%(1<<40), 0), 1<<62); ok {
			t.Fatalf("a used code of step %d is good", step)
		}
		UseRecovery([]string{given}, secret)
	})
}
