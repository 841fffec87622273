package convert

import (
	"net"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"
)

// What may be printed. Whatever does not pass here is named in the notes by its path, without its value.

// isSecretWord reports whether a key is likely to have a secret as its value.
func isSecretWord(key string) bool {
	lower := strings.ToLower(key)
	isIn := func(w string) bool { return strings.Contains(lower, w) }
	if slices.ContainsFunc([]string{"pass", "pwd", "secret", "token", "credential", "private", "apikey", "userdata", "user-data", "kennwort"}, isIn) {
		return true
	}
	words := strings.FieldsFunc(lower, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	isWord := func(w string) bool {
		return slices.Contains([]string{"pw", "pin", "psk", "otp", "cred", "creds", "login", "logins", "community", "luks"}, w)
	}
	return slices.ContainsFunc(words, isWord) || len(words) > 1 && words[len(words)-1] == "key"
}

var secretTexts = regexp.MustCompile(`://[^/\s]*@` + // a URL with an account
	`|[^\s/:@]+:[^\s/:@]*@` +
	`|\$(1|2[abxy]?|5|6|7|y|gy|apr1|argon2\w*|scrypt|pbkdf2[\w-]*)\$` + // hashes of passwords
	`|-----BEGIN|eyJ[A-Za-z0-9_-]{8,}\.` + // keys, JSON web tokens
	`|\b[a-z0-9]{6}\.[a-z0-9]{16}\b` + // tokens of kubeadm
	`|(?i:pass\w*|kennwort|secret|token|api[-_ ]?key|bearer|basic)["']?\s*([:=/]|\b(is|ist)\b| )\s*\S` +
	`|(?i:\b(pw|pwd|pin|psk|otp|creds?|credentials?|logins?|community|luks)["']?\s*([:=/ ])\s*\S)` +
	`|(?i:\b(root|admin|administrator|user|username)\s*[:=/]\s*\S)` + // accounts with what opens them
	`|\b(gh[pousr]_|github_pat_|glpat-|xox[abp]-|AKIA[0-9A-Z]{12}|hv[sb]\.|sk-)[A-Za-z0-9]`)

// looksSecret reports whether a text is likely to be a secret, or to hold one.
func looksSecret(text string) bool { return secretTexts.MatchString(text) }

// shown is a name in a note.
func shown(name string) string {
	if looksSecret(name) {
		return "(a name that looks like a secret)"
	}
	return short(name)
}

// isPlain reports whether a text of at most n letters may be in the output.
func isPlain(n int) func(string) bool {
	return func(t string) bool {
		return t != "" && len(t) <= n && utf8.ValidString(t) && clean(t) == t && strings.TrimSpace(t) == t && !looksSecret(t)
	}
}

// isHost reports whether a text is an address or the name of a machine, and nothing more: no account, no path.
func isHost(t string) bool {
	if net.ParseIP(t) != nil {
		return true
	}
	return len(t) <= 253 && len(validation.IsDNS1123Subdomain(strings.ToLower(t))) == 0 && !looksSecret(t)
}

func isPort(t string) bool {
	return len(t) > 0 && len(t) < 6 && strings.Trim(t, "0123456789") == "" && (len(t) < 5 || t <= "65535")
}

func isObjectName(t string) bool { return len(validation.IsDNS1123Subdomain(t)) == 0 }

func isNamespace(t string) bool { return len(validation.IsDNS1123Label(t)) == 0 }

func isLabelKey(t string) bool { return len(validation.IsQualifiedName(t)) == 0 }

func isLabelValue(t string) bool { return len(validation.IsValidLabelValue(t)) == 0 && !looksSecret(t) }

// isOfTool reports whether a label belongs to Kubernetes or to Slipway: the inventory takes none of these over.
func isOfTool(key string) bool {
	prefix, _, _ := strings.Cut(key, "/")
	return strings.Contains(key, "/") && slices.ContainsFunc([]string{"kubernetes.io", "k8s.io", "x-k8s.io", "slipway.dev"},
		func(d string) bool { return prefix == d || strings.HasSuffix(prefix, "."+d) })
}

// clean makes a text fit for a comment in YAML.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' || r == '\ufeff' || r == '\ufffd' || r == '\ufffe' || r == '\uffff' {
			return ' '
		}
		return r
	}, s)
}

// short makes a text safe to show, and keeps at most 200 of its characters.
func short(s string) string {
	if r := []rune(clean(s)); len(r) > 200 {
		return string(r[:200]) + "..."
	}
	return clean(s)
}
