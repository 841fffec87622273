package dhcp_test

import (
	"context"
	"fmt"

	"slipway.dev/slipway/pxe/dhcp"
)

// Before a server leases addresses, it asks whether another one does. It needs the right to open the client port.
func ExampleForeign() {
	servers, err := dhcp.Foreign(context.Background(), "eth0", dhcp.AnswersWithin)
	if err != nil {
		fmt.Println("nobody knows whether there is another server:", err)
		return
	}
	fmt.Println("other servers:", servers)
}
