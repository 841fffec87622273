package redfishtest_test

import (
	"net/http"
	"testing"

	"github.com/stmcginnis/gofish"
	"github.com/stmcginnis/gofish/schemas"

	"slipway.dev/slipway/bmc/redfish/redfishtest"
)

// gofish is written by others against real controllers: that it walks our documents and gives orders says that they are
// such as a client expects.
func TestAClientOfOthersWalksEveryDialect(t *testing.T) {
	for _, dialect := range redfishtest.Dialects() {
		t.Run(dialect.Name, func(t *testing.T) {
			t.Parallel()
			m := &redfishtest.Memory{}
			s := redfishtest.New(redfishtest.Options{Dialect: dialect, Systems: []redfishtest.System{{Machine: m}}})
			srv := s.StartTLS(t)
			c, err := gofish.ConnectContext(t.Context(), gofish.ClientConfig{Endpoint: srv.URL, Username: "admin", Password: "secret", HTTPClient: srv.Client()})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Logout()
			systems, err := c.Service.Systems()
			if err != nil || len(systems) != 1 {
				t.Fatalf("%d systems, %v", len(systems), err)
			}
			sys := systems[0]
			sys.DisableEtagMatch(true) // or gofish sends If-Match with the action, which iDRAC refuses
			if _, err := sys.Reset(schemas.OnResetType); err != nil {
				t.Fatal(err)
			}
			if sys, err = schemas.GetComputerSystem(c, sys.ODataID); err != nil || sys.PowerState != schemas.OnPowerState {
				t.Fatalf("the power is %v, %v", sys, err)
			}
			cpus, err := sys.Processors()
			cores := 0
			for _, cpu := range cpus {
				if cpu.TotalCores != nil {
					cores += int(*cpu.TotalCores)
				}
			}
			if err != nil || len(cpus) != 3 || cores != 64 {
				t.Errorf("%d processors with %d cores, %v", len(cpus), cores, err)
			}
			if dimms, err := sys.Memory(); err != nil || len(dimms) != 3 {
				t.Errorf("memory: %v, %v", dimms, err)
			}
			managers, err := c.Service.Managers()
			if err != nil || len(managers) != 1 || managers[0].FirmwareVersion != dialect.Firmware {
				t.Errorf("managers: %v, %v", managers, err)
			}
			chassis, err := c.Service.Chassis()
			if err != nil || len(chassis) != 1 {
				t.Errorf("chassis: %v, %v", chassis, err)
			}
			service, err := c.Service.AccountService()
			if err != nil {
				t.Fatal(err)
			}
			if accounts, err := service.Accounts(); err != nil || len(accounts) == 0 {
				t.Errorf("accounts: %v, %v", accounts, err)
			}
		})
	}
}

func TestTheServiceRefusesStrangers(t *testing.T) {
	s := redfishtest.New(redfishtest.Options{IsPlain: true})
	url := s.Start(t)
	for path, want := range map[string]int{
		"/redfish/v1/": 200, "/redfish/v1": 200, "/redfish/v1/Systems": 401, "/redfish/v1/nothing": 401,
	} {
		resp, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("GET %s answers %d, want %d", path, resp.StatusCode, want)
		}
	}
}
