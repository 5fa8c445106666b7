package signals

import "fmt"

// room returns the series of a figure of one room, as two nodes tell it.
func room(figure string, a, b int) string {
	return fmt.Sprintf("ropeline_room_%[1]s{zone=\"z\",room=\"shop\",instance=\"a\"} %[2]dx90\nropeline_room_%[1]s{zone=\"z\",room=\"shop\",instance=\"b\"} %[3]dx90\n", figure, a, b)
}

// places returns the same of rights of one kind.
func places(figure string, a, b int) string {
	return fmt.Sprintf("ropeline_room_rights_%[1]s{zone=\"z\",room=\"shop\",kind=\"places\",instance=\"a\"} %[2]dx90\n"+
		"ropeline_room_rights_%[1]s{zone=\"z\",room=\"shop\",kind=\"places\",instance=\"b\"} %[3]dx90\n"+
		"ropeline_room_rights_%[1]s{zone=\"z\",room=\"shop\",kind=\"per_minute\",instance=\"b\"} 7x90\n", figure, a, b)
}

// info returns which settings the room goes by.
func info(policy, method string) string {
	return fmt.Sprintf("ropeline_room_info{zone=\"z\",room=\"shop\",policy=%q,queueing_method=%q,instance=\"a\"} 1x90\n", policy, method)
}
