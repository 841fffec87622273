package attack_test

import "testing"

// TestTheBootNetworkReachesNoAdminDoor asks, from the boot network, for what only admins may have: the boot door has none of
// it under any spelling, and the admin door does not listen there.
func TestTheBootNetworkReachesNoAdminDoor(t *testing.T) {
	a := victim(t)
	server := a.Net.Address.Addr().String()
	for _, path := range []string{
		"/api/v1/hosts", "/api/v1/secrets", "//api/v1/secrets", "/boot/../api/v1/secrets", "/boot/%2e%2e/api/v1/secrets", "/API/v1/hosts",
		"/metrics", "/healthz", "/readyz", "/slipway.db", "/secret.key", "/../secret.key", "/boot/..%2f..%2fsecret.key", "/ui/", "/debug/pprof/",
	} {
		if code := status(a, "--path-as-is", "http://"+server+path); code[0] != '4' {
			t.Errorf("the boot door answers GET %s with %s, want a refusal", path, code)
		}
		if code := status(a, "--path-as-is", "http://"+server+":8067"+path); code != "000" {
			t.Errorf("the admin door answers GET %s on the boot network with %s", path, code)
		}
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "CONNECT", "TRACE"} {
		if code := status(a, "-X", method, "http://"+server+"/api/v1/hosts"); code[0] != '4' {
			t.Errorf("the boot door answers %s with %s, want a refusal", method, code)
		}
	}
	if hosts := a.Hosts(); len(hosts) != 0 {
		t.Errorf("asking for these made %d hosts", len(hosts))
	}
}
