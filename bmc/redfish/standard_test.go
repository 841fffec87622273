package redfish

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/bmc/redfish/redfishtest"
	"slipway.dev/slipway/inventory"
)

// tree is a service made of documents by their path, for what no dialect has. A path with a method before it is answered by
// the function.
type tree struct {
	docs  map[string]any
	doors map[string]http.HandlerFunc

	mu     sync.Mutex
	bodies map[string][]map[string]any // of requests that are no reading
	logins []string                    // that were refused
}

type object = map[string]any

func at(path string) object { return object{"@odata.id": path} }

// plainTree is a small controller with one of everything.
func plainTree() *tree {
	return &tree{bodies: map[string][]map[string]any{}, doors: map[string]http.HandlerFunc{}, docs: map[string]any{
		"/redfish/v1": object{
			"RedfishVersion": "1.6.0", "Vendor": "Acme", "Systems": at("/redfish/v1/Systems"), "Managers": at("/redfish/v1/Managers"),
			"Chassis": at("/redfish/v1/Chassis"), "AccountService": at("/redfish/v1/AccountService"), "Links": object{"Sessions": at("/redfish/v1/SessionService/Sessions")},
		},
		"/redfish/v1/Systems": object{"Members": []object{at("/redfish/v1/Systems/1")}},
		"/redfish/v1/Systems/1": object{
			"Id": "1", "PowerState": "On", "LogServices": at("/redfish/v1/Systems/1/LogServices"),
			"Boot":  object{"BootSourceOverrideEnabled": "Disabled", "BootSourceOverrideTarget": "None"},
			"Links": object{"Chassis": []object{at("/redfish/v1/Chassis/1")}, "ManagedBy": []object{at("/redfish/v1/Managers/1")}},
		},
		"/redfish/v1/Systems/1/LogServices":     object{"Members": []object{at("/redfish/v1/Systems/1/LogServices/SEL")}},
		"/redfish/v1/Systems/1/LogServices/SEL": object{"Id": "SEL", "Entries": at("/redfish/v1/E")},
		"/redfish/v1/E":                         object{"Members": []object{{"@odata.id": "/redfish/v1/E/1", "Id": "1", "Created": "2026-01-01T00:00:00Z", "Message": "one"}}},
		"/redfish/v1/Managers":                  object{"Members": []object{at("/redfish/v1/Managers/1")}},
		"/redfish/v1/Managers/1":                object{"Id": "1", "Model": "B", "VirtualMedia": at("/redfish/v1/Managers/1/VirtualMedia")},
		"/redfish/v1/Managers/1/VirtualMedia":   object{"Members": []object{at("/redfish/v1/CD1")}},
		"/redfish/v1/CD1": object{
			"Id": "CD1", "MediaTypes": []string{"CD/DVD"}, "Inserted": false, "Image": nil,
			"Actions": object{"#VirtualMedia.InsertMedia": object{"target": "/redfish/v1/CD1/Insert"}},
		},
		"/redfish/v1/Chassis":                    object{"Members": []object{at("/redfish/v1/Chassis/1")}},
		"/redfish/v1/Chassis/1":                  object{"Id": "1", "Thermal": at("/redfish/v1/Chassis/1/Thermal")},
		"/redfish/v1/Chassis/1/Thermal":          object{"Temperatures": []object{{"Name": "CPU", "ReadingCelsius": "44", "Status": object{"Health": "OK"}}}},
		"/redfish/v1/AccountService":             object{"Accounts": at("/redfish/v1/AccountService/Accounts"), "Roles": at("/redfish/v1/AccountService/Roles")},
		"/redfish/v1/AccountService/Accounts":    object{"Members": []object{at("/redfish/v1/AccountService/Accounts/1")}},
		"/redfish/v1/AccountService/Accounts/1":  object{"Id": "1", "UserName": "slipway", "RoleId": "Administrator", "Enabled": true},
		"/redfish/v1/AccountService/Roles":       object{"Members": []object{at("/redfish/v1/AccountService/Roles/admin")}},
		"/redfish/v1/AccountService/Roles/admin": object{"Id": "admin", "AssignedPrivileges": []string{"Login", "ConfigureManager", "ConfigureUsers"}},
		"/redfish/v1/AccountService/Roles/user":  object{"Id": "user", "AssignedPrivileges": []string{"Login", "ConfigureSelf", "ConfigureComponents"}},
	}}
}

func (tr *tree) set(path string, changes object) { maps.Copy(tr.docs[path].(object), changes) }

func (tr *tree) isKnown(r *http.Request) bool {
	user, password, ok := r.BasicAuth()
	if ok && user == "slipway" && password == canary || r.Header.Get("X-Auth-Token") == "tok" {
		return true
	}
	tr.logins = append(tr.logins, password)
	return false
}

func (tr *tree) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	path := strings.TrimRight(r.URL.Path, "/")
	var body object
	if r.Method != http.MethodGet {
		_ = json.NewDecoder(r.Body).Decode(&body)
		tr.bodies[path] = append(tr.bodies[path], body)
		r.Body = http.NoBody
	}
	if door, ok := tr.doors[r.Method+" "+path]; ok {
		door(w, r)
		return
	}
	switch {
	case r.Method == http.MethodPost && strings.HasSuffix(path, "/Sessions"):
		if body["Password"] != canary {
			tr.logins = append(tr.logins, fmt.Sprint(body["Password"]))
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("X-Auth-Token", "tok")
		w.WriteHeader(http.StatusCreated)
	case path != "/redfish/v1" && !tr.isKnown(r):
		w.WriteHeader(http.StatusUnauthorized)
	case r.Method == http.MethodGet && tr.docs[path+"?"+r.URL.RawQuery] != nil:
		_ = json.NewEncoder(w).Encode(tr.doc(path + "?" + r.URL.RawQuery))
	case r.Method == http.MethodGet && tr.docs[path] != nil:
		_ = json.NewEncoder(w).Encode(tr.doc(path))
	case r.Method == http.MethodPatch && tr.docs[path] != nil:
		for key, v := range body {
			if inner, ok := v.(map[string]any); ok {
				if was, ok := tr.docs[path].(object)[key].(object); ok {
					maps.Copy(was, inner)
					continue
				}
			}
			tr.docs[path].(object)[key] = v
		}
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (tr *tree) doc(path string) object {
	d := maps.Clone(tr.docs[path].(object))
	d["@odata.id"] = path
	return d
}

func (tr *tree) open(t *testing.T, options map[string]string) *driver {
	t.Helper()
	srv := httptest.NewTLSServer(tr)
	t.Cleanup(srv.Close)
	to := target(srv.URL)
	to.Options = options
	return drive(t, to)
}

// refuse answers with a Redfish message.
func refuse(code int, id, text string, args ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(object{"error": object{"code": "Base.1.8.GeneralError", "@Message.ExtendedInfo": []object{{"MessageId": id, "Message": text, "MessageArgs": args}}}})
	}
}

func TestALongLogIsReadToItsNewestEntry(t *testing.T) {
	const n, perPage, limit = 700, 50, 100
	entry := func(i int) object {
		return object{"@odata.id": fmt.Sprintf("/redfish/v1/E/%d", i), "Id": fmt.Sprint(i), "Created": fmt.Sprintf("2026-01-%02dT%02d:00:00Z", 1+i/24, i%24), "Message": fmt.Sprintf("event %d", i)}
	}
	for name, c := range map[string]struct{ isNewestFirst, isLinks bool }{
		"oldest first": {}, "newest first": {isNewestFirst: true}, "links, oldest first": {isLinks: true}, "links, newest first": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			tr := plainTree()
			for p := range n / perPage {
				page := object{"Members@odata.count": n}
				var members []object
				for k := range perPage {
					i := p*perPage + k
					if c.isNewestFirst {
						i = n - 1 - i
					}
					e := entry(i)
					if c.isLinks {
						tr.docs[e["@odata.id"].(string)] = e
						e = at(e["@odata.id"].(string))
					}
					members = append(members, e)
				}
				page["Members"] = members
				if p < n/perPage-1 {
					page["Members@odata.nextLink"] = fmt.Sprintf("/redfish/v1/E?page=%d", p+1)
				}
				path := "/redfish/v1/E"
				if p > 0 {
					path += fmt.Sprintf("?page=%d", p)
				}
				tr.docs[path] = page
			}
			ctx, omitted := bmc.NoteOmissions(t.Context())
			got, err := tr.open(t, nil).Log(ctx, limit)
			ok(t, err)
			if len(got) != limit || got[0].Message != "event 699" || got[limit-1].Message != "event 600" {
				t.Fatalf("%d entries, from %+v to %+v", len(got), got[0], got[len(got)-1])
			}
			if texts := omitted.Texts(); len(texts) != 1 || !strings.Contains(texts[0], "600 of 700 entries") {
				t.Errorf("left out: %q", texts)
			}
		})
	}
}

func TestALogOfTheManagerThatIsMissingHidesNoOther(t *testing.T) {
	tr := plainTree()
	tr.set("/redfish/v1/Managers/1", object{"LogServices": at("/redfish/v1/Managers/1/LogServices")})
	if got, err := tr.open(t, nil).Log(t.Context(), 10); err != nil || len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestTimesAreReadAsTheyAreFound(t *testing.T) {
	for text, want := range map[string]string{
		"2026-03-01 10:00:00": "2026-03-01T10:00:00Z", "2026-02-01T10:00:00+0800": "2026-02-01T02:00:00Z", "2026-03-01T10:00:00": "2026-03-01T10:00:00Z",
		"Sun Mar  1 10:00:00 2026": "2026-03-01T10:00:00Z", "Sun, 01 Mar 2026 10:00:00 GMT": "2026-03-01T10:00:00Z", "2026/03/01 10:00:00": "2026-03-01T10:00:00Z",
		"2026-03-01T10:00:00.5-05:00": "2026-03-01T15:00:00Z",
	} {
		if got := entryOf([]byte(fmt.Sprintf(`{"Created":%q,"Message":"m"}`, text))); got.At != want || got.Message != "m" {
			t.Errorf("%s: %+v", text, got)
		}
	}
	if got := entryOf([]byte(`{"Created":"pre-init","Message":"m"}`)); got.At != "" || got.Message != "[pre-init] m" {
		t.Errorf("what is no time: %+v", got)
	}
}

func TestAChassisThatFailsHidesNoOther(t *testing.T) {
	tr := plainTree()
	links := []object{at("/redfish/v1/Chassis/1"), at("/redfish/v1/Chassis/Gone")}
	for n := 2; n <= 42; n++ {
		path := fmt.Sprintf("/redfish/v1/Chassis/%d", n)
		links = append(links, at(path))
		tr.docs[path] = object{"Thermal": at(path + "/Thermal"), "Power": at(path + "/Power")}
		tr.docs[path+"/Thermal"] = object{"Temperatures": []object{{"Name": fmt.Sprintf("GPU %d", n), "ReadingCelsius": 90}}}
		tr.docs[path+"/Power"] = object{}
	}
	tr.doors["GET /redfish/v1/Chassis/7/Power"] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }
	tr.docs["/redfish/v1/Systems/1"].(object)["Links"].(object)["Chassis"] = links
	ctx, omitted := bmc.NoteOmissions(t.Context())
	got, err := tr.open(t, nil).Sensors(ctx)
	ok(t, err)
	if len(got) != 42 || got[0].Value != 44 {
		t.Errorf("%d sensors, the first is %+v", len(got), got[0])
	}
	texts := omitted.Texts()
	if len(texts) != 2 || !strings.Contains(texts[0], "/redfish/v1/Chassis/Gone") || !strings.Contains(texts[1], "Chassis/7/Power") {
		t.Errorf("left out: %q", texts)
	}
}

func TestARoleIsWhatItMayDo(t *testing.T) {
	const account = "/redfish/v1/AccountService/Accounts/1"
	for name, c := range map[string]struct {
		account object
		role    string
	}{
		"the standard's name":                    {object{"RoleId": "Administrator"}, "administrator"},
		"another name, by its link":              {object{"RoleId": "boss", "Links": object{"Role": at("/redfish/v1/AccountService/Roles/admin")}}, "administrator"},
		"another name, by its id":                {object{"RoleId": "admin"}, "administrator"},
		"another name for an operator":           {object{"RoleId": "user"}, "operator"},
		"a role that is not told":                {object{"RoleId": nil}, roleUnknown},
		"a role whose privileges are not told":   {object{"RoleId": "mystery"}, roleUnknown},
		"the standard's name for who reads only": {object{"RoleId": "ReadOnly"}, "user"},
	} {
		t.Run(name, func(t *testing.T) {
			tr := plainTree()
			tr.set(account, c.account)
			d := tr.open(t, nil)
			users, err := d.Users(t.Context())
			ok(t, err)
			if len(users) != 1 || users[0].Role != c.role {
				t.Fatalf("%+v", users)
			}
			if err := d.CheckCredentials(t.Context()); (err == nil) != (c.role == "administrator" || c.role == roleUnknown) {
				t.Errorf("the check: %v", err)
			}
		})
	}
}

func TestANewAdministratorGetsTheRoleThatTheControllerHas(t *testing.T) {
	tr := plainTree()
	tr.doors["POST /redfish/v1/AccountService/Accounts"] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }
	err := tr.open(t, nil).CreateUser(t.Context(), "helper", canary)
	if bodies := tr.bodies["/redfish/v1/AccountService/Accounts"]; len(bodies) != 1 || bodies[0]["RoleId"] != "admin" {
		t.Errorf("sent %v", bodies)
	}
	is(t, err, inventory.Unavailable) // it said 201, and has no such account
}

func TestInsertMediaIsSentWhatTheControllerWants(t *testing.T) {
	const image = "https://192.0.2.1/a.iso"
	missing := refuse(400, "Base.1.8.ActionParameterMissing", "The action InsertMedia requires the parameter TransferProtocolType to be present in the request body.")
	unwanted := refuse(400, "Base.1.8.ActionParameterNotSupported", "The parameter WriteProtected for the action InsertMedia is not supported on the target resource.")
	for name, c := range map[string]struct {
		info    []object
		refuses func(sent object) http.HandlerFunc
		want    object
	}{
		"a parameter is missing, by the words of the refusal": {refuses: func(sent object) http.HandlerFunc {
			if sent[mediaProtocol] == nil {
				return missing
			}
			return nil
		}, want: object{"Image": image, "Inserted": true, "WriteProtected": true, "TransferProtocolType": "HTTPS"}},
		"a parameter is not supported, by the words of the refusal": {refuses: func(sent object) http.HandlerFunc {
			if sent[mediaReadOnly] != nil {
				return unwanted
			}
			return nil
		}, want: object{"Image": image, "Inserted": true}},
		"one after the other": {refuses: func(sent object) http.HandlerFunc {
			switch {
			case sent[mediaReadOnly] != nil:
				return unwanted
			case sent[mediaProtocol] == nil:
				return missing
			}
			return nil
		}, want: object{"Image": image, "Inserted": true, "TransferProtocolType": "HTTPS"}},
		"the ActionInfo tells": {info: []object{
			{"Name": "Image", "Required": true},
			{"Name": "TransferProtocolType", "Required": true, "AllowableValues": []string{"NFS", "https"}},
			{"Name": "TransferMethod", "Required": true, "AllowableValues": []string{"Stream"}},
		}, want: object{"Image": image, "TransferProtocolType": "https", "TransferMethod": "Stream"}},
		"a refusal without words": {refuses: func(sent object) http.HandlerFunc {
			if len(sent) > 1 {
				return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) }
			}
			return nil
		}, want: object{"Image": image}},
	} {
		t.Run(name, func(t *testing.T) {
			tr := plainTree()
			if c.info != nil {
				tr.docs["/redfish/v1/CD1/Info"] = object{"Parameters": c.info}
				tr.docs["/redfish/v1/CD1"].(object)["Actions"].(object)["#VirtualMedia.InsertMedia"].(object)["@Redfish.ActionInfo"] = "/redfish/v1/CD1/Info"
			}
			tr.doors["POST /redfish/v1/CD1/Insert"] = func(w http.ResponseWriter, r *http.Request) {
				all := tr.bodies["/redfish/v1/CD1/Insert"]
				if c.refuses != nil {
					if no := c.refuses(all[len(all)-1]); no != nil {
						no(w, r)
						return
					}
				}
				tr.set("/redfish/v1/CD1", object{"Image": image, "Inserted": true})
				w.WriteHeader(http.StatusNoContent)
			}
			err := tr.open(t, nil).InsertMedia(t.Context(), image)
			all := tr.bodies["/redfish/v1/CD1/Insert"]
			if err != nil || !maps.Equal(all[len(all)-1], c.want) {
				t.Errorf("%v, sent %v", err, all)
			}
		})
	}
}

func TestABootSourceMayBeSpeltInOtherWords(t *testing.T) {
	for _, c := range []struct {
		allowed []string
		device  bmc.Device
		want    string
	}{
		{[]string{"None", "Pxe", "Hdd", "CD/DVD", "UsbCd"}, bmc.Virtual, "CD/DVD"},
		{[]string{"None", "Pxe", "Cd", "CD/DVD"}, bmc.Virtual, "Cd"},
		{[]string{"none", "PXE", "HDD"}, bmc.PXE, "PXE"},
		{[]string{"None", "Network", "HardDisk"}, bmc.Disk, "HardDisk"},
	} {
		tr := plainTree()
		tr.docs["/redfish/v1/Systems/1"].(object)["Boot"].(object)["BootSourceOverrideTarget@Redfish.AllowableValues"] = c.allowed
		d := tr.open(t, nil)
		ok(t, d.SetBoot(t.Context(), bmc.Boot{Device: c.device}))
		b, err := d.Boot(t.Context())
		if sent := tr.bodies["/redfish/v1/Systems/1"][0]["Boot"].(map[string]any)["BootSourceOverrideTarget"]; err != nil || sent != c.want || b.Device != c.device {
			t.Errorf("%v: sent %v, read back %+v, %v", c.allowed, sent, b, err)
		}
	}
}

func TestSessionsThatAreRefusedAreNoWrongPassword(t *testing.T) {
	const sessions = "POST /redfish/v1/SessionService/Sessions"
	for _, code := range []int{400, 403, 404, 405, 501} {
		tr := plainTree()
		tr.doors[sessions] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code); _, _ = w.Write([]byte("{}")) }
		if is, err := tr.open(t, nil).Power(t.Context()); err != nil || is != inventory.PowerOn {
			t.Errorf("%d: %s, %v", code, is, err)
		}
	}
	tr := plainTree()
	tr.doors[sessions] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }
	d := tr.open(t, nil)
	for range 3 {
		_, err := d.Power(t.Context())
		is(t, err, inventory.Unauthorized)
		var e *inventory.Error
		if errors.As(err, &e); !strings.Contains(e.Hint, "auth=basic") {
			t.Errorf("the hint is %q", e.Hint)
		}
	}
	if n := len(tr.bodies["/redfish/v1/SessionService/Sessions"]); n != 1 {
		t.Errorf("%d logins", n)
	}
	if _, err := tr.open(t, map[string]string{OptionAuth: "basic"}).Power(t.Context()); err != nil {
		t.Errorf("basic: %v", err)
	}
}

func TestARefusedLoginIsNotRepeatedByADriver(t *testing.T) {
	for _, auth := range []string{"session", "basic"} {
		tr := plainTree()
		srv := httptest.NewTLSServer(tr)
		t.Cleanup(srv.Close)
		to := target(srv.URL)
		to.Password, to.Options = "wrong", map[string]string{OptionAuth: auth}
		d := drive(t, to)
		for range 3 {
			_, err := d.Power(t.Context())
			is(t, err, inventory.Unauthorized)
		}
		if len(tr.logins) != 1 {
			t.Errorf("%s: %d wrong logins", auth, len(tr.logins))
		}
	}
}

func TestOdditiesThatAreNoFaults(t *testing.T) {
	t.Run("the service root wants a login", func(t *testing.T) {
		tr := plainTree()
		tr.doors["GET /redfish/v1"] = func(w http.ResponseWriter, r *http.Request) {
			if !tr.isKnown(r) {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			_ = json.NewEncoder(w).Encode(tr.doc("/redfish/v1"))
		}
		_, err := tr.open(t, nil).Power(t.Context())
		ok(t, err)
	})
	t.Run("it is busy for a second", func(t *testing.T) {
		tr, n := plainTree(), 0
		tr.doors["GET /redfish/v1/Systems/1"] = func(w http.ResponseWriter, _ *http.Request) {
			if n++; n == 1 {
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			_ = json.NewEncoder(w).Encode(tr.doc("/redfish/v1/Systems/1"))
		}
		_, err := tr.open(t, nil).Power(t.Context())
		ok(t, err)
	})
	t.Run("the power state is in small letters", func(t *testing.T) {
		tr := plainTree()
		tr.set("/redfish/v1/Systems/1", object{"PowerState": "on"})
		if is, err := tr.open(t, nil).Power(t.Context()); err != nil || is != inventory.PowerOn {
			t.Errorf("%s, %v", is, err)
		}
	})
	t.Run("numbers are texts", func(t *testing.T) {
		tr := plainTree()
		tr.set("/redfish/v1/Systems/1", object{"MemorySummary": object{"TotalSystemMemoryGiB": "256"}, "Processors": at("/redfish/v1/P")})
		tr.docs["/redfish/v1/P"] = object{"Members": []object{{"@odata.id": "/redfish/v1/P/1", "ProcessorType": "CPU", "TotalCores": "32", "TotalThreads": nil, "Status": nil}}}
		got, err := tr.open(t, nil).Inventory(t.Context())
		if err != nil || got.Hardware.MemoryBytes != 256<<30 || got.Hardware.CPU.Cores != 32 {
			t.Errorf("%+v, %v", got.Hardware, err)
		}
	})
}

func TestAPasswordThatTheControllerDropsIsNoSuccess(t *testing.T) {
	s, d := drives(t, redfishtest.Standard, &redfishtest.Memory{})
	s.Script(redfishtest.Fault{Method: "PATCH", Do: redfishtest.Pretend()})
	is(t, d.SetPassword(t.Context(), "slipway", "Abc-123-xyz-9"), inventory.Invalid)
	s.Script()
	ok(t, d.CheckCredentials(t.Context())) // with the old one
}

func TestAnAccountThatTheControllerKeepsIsNotDeleted(t *testing.T) {
	s, d := drives(t, redfishtest.Standard, &redfishtest.Memory{})
	ok(t, d.CreateUser(t.Context(), "helper", "Abc-123-xyz-9"))
	s.Script(redfishtest.Fault{Method: "DELETE", Path: "Accounts", Do: redfishtest.Pretend()})
	is(t, d.DeleteUser(t.Context(), "helper"), inventory.Unavailable)
	s.Script(redfishtest.Fault{Method: "POST", Path: "ClearLog", Do: redfishtest.Pretend()})
	is(t, d.ClearLog(t.Context()), inventory.Unavailable)
	s.Script(redfishtest.Fault{Method: "PATCH", Do: redfishtest.Pretend()})
	is(t, d.Locate(t.Context(), true), inventory.Unavailable)
}

func TestCanAsksTheController(t *testing.T) {
	_, d := drives(t, redfishtest.Standard, &redfishtest.Memory{})
	got, err := bmc.Can(t.Context(), d)
	ok(t, err)
	if want := []string{"power", "boot", "inventory", "locate", "log", "media", "sensors", "users"}; !slices.Equal(got, want) {
		t.Errorf("a whole controller can %v", got)
	}
	tr := plainTree()
	tr.set("/redfish/v1/Managers/1", object{"VirtualMedia": nil, "Actions": object{"#Manager.Reset": object{"target": "/redfish/v1/Managers/1/Reset"}}})
	tr.set("/redfish/v1/Systems/1", object{"LogServices": nil, "Boot": nil})
	tr.set("/redfish/v1/Chassis/1", object{"Thermal": nil})
	d = tr.open(t, nil)
	got, err = bmc.Can(t.Context(), d)
	ok(t, err)
	if want := []string{"power", "inventory", "reset", "users"}; !slices.Equal(got, want) {
		t.Errorf("a small controller can %v", got)
	}
	tr.doors["POST /redfish/v1/Managers/1/Reset"] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }
	ok(t, d.ResetController(t.Context()))
	if sent := tr.bodies["/redfish/v1/Managers/1/Reset"]; len(sent) != 1 || sent[0]["ResetType"] != "GracefulRestart" {
		t.Errorf("sent %v", sent)
	}
}
