package weak

import "testing"

func TestWhatAnybodyWouldTryFirstIsWeak(t *testing.T) {
	for _, p := range []string{
		"password123", "Password2026!", "P@ssw0rd2026", "passwordpassword", "administrator", "Administrator1!", "admin12345", "adminadmin", "root123456", "welcome2026!",
		"letmein12345", "iloveyou1234", "slipway2026", "slipwayslipway", "Slipway123!", "slipway-admin", "changeme123", "changemenow", "qwertyuiop", "qwertz12345", "1qaz2wsx3edc", "zaq12wsxcde3", "1q2w3e4r5t",
		"asdfghjkl123", "1234567890", "0987654321", "12345678901234567890", "abcdefghij", "abcabcabcabc", "aaaaaaaaaaaa", "ababababab", "1111111111", "11112222333", "summer2026!!", "Winter2026", "monday12345",
		"anna123456", "AnnaAnna2026", "anna.meier1", "MeierAnna99", "iamanna2026", "kubernetes1!", "datacenter1", "calvincalvin", "supermicro2026", "passw0rd!!!!!!", "trustno1trustno1", "opensesame1", "computer2026", "2026202620",
	} {
		if Reason(p, "anna", "Anna Meier") == "" {
			t.Errorf("%q is taken", p)
		}
	}
	for _, p := range []string{
		"correct horse anna", "correct horse", "a new long one", "one by the admin", "k7wqz-p4mbt-x2vhn-c9sdf", "tangerine bicycle orbit", "Zu8-Gr2!pLq", "mein hund frisst gerne kuchen",
		"the quick brown fox", "gh45-jfd8-kls2", "xkcd936staple", "vier Pferde im Regen", "пароль мой длинный", "correct battery",
	} {
		if why := Reason(p, "anna", "Anna Meier"); why != "" {
			t.Errorf("%q is refused: %s", p, why)
		}
	}
}

func FuzzReason(f *testing.F) {
	for _, s := range []string{"", "a", "password123", "ünïcödé", "\xff\xfe", "1qaz2wsx"} {
		f.Add(s, "anna")
	}
	f.Fuzz(func(_ *testing.T, password, user string) { _ = Reason(password, user) })
}
