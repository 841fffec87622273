// Package weak says why a password is one of the first that anybody would try. Its words are few and of our own writing.
// Rules find what people make of them: years and signs behind them, letters as digits, walks on the keyboard, repetitions.
package weak

import (
	"slices"
	"strings"
	"unicode"
)

// words are what such passwords are made of, in lower case. Two and three of them in a row are no better.
var words = strings.Fields(`
password passwort passwd passphrase pass word pwd kennwort motdepasse contrasena parola senha
admin administrator root sysadmin superuser operator user test tester guest demo default public private secret geheim
login logon access enter open sesame opensesame welcome willkommen bienvenue hello hallo letmein let me in changeme change please now
iloveyou love you me my the monkey dragon master shadow sunshine princess football baseball soccer hockey superman batman starwars pokemon
whatever trustno trust one freedom computer internet server network datacenter rack cluster machine host boot install baremetal bare metal
slipway provision provisioning pxe dhcp redfish ipmi idrac ilo bmc calvin supermicro
summer winter spring autumn sommer herbst monday tuesday wednesday thursday friday saturday sunday
january february march april may june july august september october november december
ubuntu debian linux redhat fedora kubernetes docker ansible vmware windows cisco
is not a an it this that for of to and with new old big good temp temporary qwerty qwertz azerty asdf zxcv abc xyz
`)

// rows are keys that lie side by side, and what is counted off.
var rows = []string{
	"qwertyuiop", "asdfghjkl", "zxcvbnm", "qwertzuiop", "yxcvbnm", "azertyuiop", "qsdfghjklm", "wxcvbn", "abcdefghijklmnopqrstuvwxyz",
	"1234567890", "0123456789", "1qaz2wsx3edc4rfv5tgb6yhn7ujm", "qazwsxedcrfvtgbyhnujm", "1q2w3e4r5t6z7u8i9o0p", "1q2w3e4r5t6y7u8i9o0p", "q1w2e3r4t5y6u7i8o9p0",
}

const (
	enough = 8 // characters in addition to what is known make a password one's own
	walk   = 4 // keys side by side are a walk
)

// leet are digits and signs that stand for letters.
var leet = strings.NewReplacer("0", "o", "1", "i", "3", "e", "4", "a", "5", "s", "7", "t", "8", "b", "@", "a", "$", "s", "!", "i", "+", "t")

// Reason says why a password of a user is weak, "" if it is not. Names are more words that belong to the user, such as a display
// name.
func Reason(password, user string, names ...string) string {
	plain := strings.ToLower(password)
	if isRepeated(plain) {
		return "it repeats a few characters"
	}
	if left(plain, rows, nil) < enough && walked(plain) {
		return "it is a walk on the keyboard"
	}
	own := []string{}
	for _, name := range append(names, user) {
		own = append(own, strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })...)
	}
	for _, form := range []string{plain, leet.Replace(plain), leet.Replace(strings.ReplaceAll(plain, "1", "l"))} {
		if has(form, own) && left(form, nil, own) < enough {
			return "it is the user's name with little else"
		}
		if left(form, rows, append(own, words...)) < enough {
			return "it is made of words and rows of keys that anybody would try first"
		}
	}
	return ""
}

func has(text string, own []string) bool {
	return slices.ContainsFunc(own, func(w string) bool { return len(w) > 2 && strings.Contains(text, w) })
}

// left counts what a guesser has to find: characters in addition to known words and walks along rows. A word counts as one, and so does
// a run of one character and a group of digits, such as a year. It takes the longest known piece at each place.
func left(text string, rows, known []string) (n int) {
	for i := 0; i < len(text); {
		best := 0
		for _, w := range known {
			if len(w) > best && len(w) > 1 && strings.HasPrefix(text[i:], w) {
				best = len(w)
			}
		}
		if best > 0 {
			n++ // which word it is
		}
		if w := alongRow(text[i:], rows); w > best {
			best = w
		}
		if best == 0 {
			n++
			best = 1
			if isDigit(text[i]) {
				for i+best < len(text) && isDigit(text[i+best]) && best < 8 {
					best++
				}
				n += (best - 1) / 4
			}
			for i+best < len(text) && text[i+best] == text[i] {
				best++
			}
		}
		i += best
	}
	return n
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// alongRow returns how far a text goes along one of the rows, forwards or backwards; 0 for a short way.
func alongRow(text string, rows []string) (best int) {
	for _, row := range rows {
		for _, r := range []string{row, reversed(row)} {
			at := strings.IndexByte(r, text[0])
			if at < 0 {
				continue
			}
			n := 0
			for n < len(text) && at+n < len(r) && text[n] == r[at+n] {
				n++
			}
			if n >= walk {
				best = max(best, n)
			}
		}
	}
	return best
}

func walked(text string) bool {
	for i := range len(text) {
		if alongRow(text[i:], rows) > 0 {
			return true
		}
	}
	return false
}

func reversed(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

// isRepeated reports whether a text is a short piece over and over, or has very few different characters.
func isRepeated(text string) bool {
	distinct := map[rune]bool{}
	for _, r := range text {
		distinct[r] = true
	}
	if len(distinct) < 4 {
		return true
	}
	for size := 1; size*2 <= len(text); size++ {
		if strings.TrimPrefix(strings.Repeat(text[:size], len(text)/size+1), text) != strings.Repeat(text[:size], len(text)/size+1) {
			return true
		}
	}
	return false
}
