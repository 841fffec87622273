package securitykey_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/securitykey"
	"slipway.dev/slipway/web/securitykey/securitykeytest"
)

var at = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

const origin = "https://slipway.example.org:8067"

func site(t *testing.T, origin string) securitykey.Site {
	t.Helper()
	s, err := securitykey.SiteOf(origin)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// said is an error of ours.
func said(err error) inventory.Error {
	if e := (*inventory.Error)(nil); errors.As(err, &e) {
		return *e
	}
	return inventory.Error{}
}

// registered gives anna a key.
func registered(t *testing.T, s securitykey.Site, a *securitykeytest.Authenticator, keys []securitykey.Key) []securitykey.Key {
	t.Helper()
	options, session, err := s.Register("anna", keys)
	if err != nil {
		t.Fatal(err)
	}
	key, err := s.Registered("anna", "work", &session, []byte(a.Create(options)), keys, at)
	if err != nil {
		t.Fatal(err)
	}
	return append(keys, key)
}

func TestOnlyPagesThatCanUseKeysAreSites(t *testing.T) {
	for origin, want := range map[string]string{
		"https://Slipway.Example.org:8067": "slipway.example.org",
		"http://localhost:8067":            "localhost",
		"http://lab.localhost":             "lab.localhost",
		"https://192.0.2.1":                "open Slipway by its name",
		"https://[2001:db8::1]:8067":       "open Slipway by its name",
		"http://slipway.example.org":       "without TLS",
		"":                                 "no Origin",
		"null":                             "no Origin",
	} {
		s, err := securitykey.SiteOf(origin)
		got := s.Name()
		if err != nil {
			e := said(err)
			got = e.Msg + " " + e.Hint
		}
		if !strings.Contains(got, want) {
			t.Errorf("%q: %s, not %s", origin, got, want)
		}
	}
}

func TestAKeyLetsInOnlyWhereItWasRegistered(t *testing.T) {
	s, key := site(t, origin), securitykeytest.New(origin)
	keys := registered(t, s, key, nil)
	options, session, err := s.Ask("anna", keys)
	if err != nil {
		t.Fatal(err)
	}
	good := key.Get(options)
	after, err := s.Answered("anna", &session, []byte(good), keys, at)
	if err != nil || !after[0].UsedAt.Equal(at) || after[0].Credential.Authenticator.SignCount != 1 || !keys[0].UsedAt.IsZero() {
		t.Errorf("the right answer: %v, %+v", err, after)
	}
	phished := *key
	phished.Origin = "https://slipway.example.com:8067"
	stranger := securitykeytest.New(origin)
	_, other, _ := s.Ask("anna", keys)
	for what, c := range map[string]struct {
		answer  string
		session *securitykey.Session
		user    string
	}{
		"signed on a page of another site": {phished.Get(options), &session, "anna"},
		"of a key that is not known":       {stranger.Get(options), &session, "anna"},
		"of another challenge":             {good, &other, "anna"},
		"of another user":                  {good, &session, "ben"},
		"empty":                            {``, &session, "anna"},
		"no object":                        {`[]`, &session, "anna"},
		"too long":                         {`{"id":"` + strings.Repeat("A", 1<<20) + `"}`, &session, "anna"},
		"with a changed signature":         {strings.Replace(good, `"signature":"ME`, `"signature":"MF`, 1), &session, "anna"},
	} {
		if _, err := s.Answered(c.user, c.session, []byte(c.answer), keys, at); said(err).Kind != inventory.Unauthorized {
			t.Errorf("an answer %s: %v", what, err)
		}
	}
	elsewhere := site(t, "https://other.example.org")
	if _, _, err := elsewhere.Ask("anna", keys); said(err).Kind != inventory.Conflict || !strings.Contains(said(err).Hint, "slipway.example.org") {
		t.Errorf("asked at another site: %v", err)
	}
}

func TestACopyOfAKeyIsNoticed(t *testing.T) {
	s, key := site(t, origin), securitykeytest.New(origin)
	keys := registered(t, s, key, nil)
	copied := *key
	for range 3 {
		options, session, _ := s.Ask("anna", keys)
		var err error
		if keys, err = s.Answered("anna", &session, []byte(key.Get(options)), keys, at); err != nil {
			t.Fatal(err)
		}
	}
	options, session, _ := s.Ask("anna", keys)
	if _, err := s.Answered("anna", &session, []byte(copied.Get(options)), keys, at); err == nil || !strings.Contains(err.Error(), "copy") {
		t.Errorf("a counter that goes back: %v", err)
	}
}

func TestRegistrationsAreChecked(t *testing.T) {
	s, key := site(t, origin), securitykeytest.New(origin)
	keys := registered(t, s, key, nil)
	options, session, err := s.Register("anna", keys)
	if err != nil {
		t.Fatal(err)
	}
	phished := securitykeytest.New("https://slipway.example.com")
	for what, answer := range map[string]string{
		"of a key that is registered": key.Create(options),
		"from another site":           phished.Create(options),
		"of a login":                  key.Get(options),
		"empty":                       "",
	} {
		if _, err := s.Registered("anna", "home", &session, []byte(answer), keys, at); err == nil {
			t.Errorf("an answer %s is accepted", what)
		}
	}
	if _, err := s.Registered("anna", "work", &session, []byte(securitykeytest.New(origin).Create(options)), keys, at); said(err).Kind != inventory.Conflict {
		t.Errorf("a name that is taken: %v", err)
	}
	for len(keys) < securitykey.KeysMax {
		keys = append(keys, keys[0])
	}
	if _, _, err := s.Register("anna", keys); said(err).Kind != inventory.Conflict {
		t.Errorf("one key too many: %v", err)
	}
}

func FuzzAnswered(f *testing.F) {
	s, _ := securitykey.SiteOf(origin)
	key := securitykeytest.New(origin)
	options, session, _ := s.Register("anna", nil)
	made, err := s.Registered("anna", "work", &session, []byte(key.Create(options)), nil, at)
	if err != nil {
		f.Fatal(err)
	}
	keys := []securitykey.Key{made}
	options, session, _ = s.Ask("anna", keys)
	right := key.Get(options)
	f.Add([]byte(right))
	f.Add([]byte(key.Create(options)))
	f.Fuzz(func(t *testing.T, answer []byte) {
		if _, err := s.Answered("anna", &session, answer, keys, at); err == nil && !strings.Contains(string(answer), "signature") {
			t.Errorf("%q lets in", answer)
		}
		_, _ = s.Registered("anna", "more", &session, answer, keys, at)
	})
}
