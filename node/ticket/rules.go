package ticket

// Rules is a set of the rules that keep the limit. It names those that are left
// out, for simulations that show what a rule is for: the zero value leaves out
// none, and nothing else is fit for use.
type Rules uint32

// The rules, by what goes without them.
const (
	LeaseGuard          Rules = 1 << iota // a lease ends with its pass, whatever clocks say
	RestartBlock                          // a restarted anchor counts nothing of before
	GiveBeforeSend                        // a gift is sent before it is written
	BoundBeforeUse                        // a place is used before the bound that covers it is written
	OpenBlockOnly                         // a claim enters after its block has closed, or a full one
	CountUntilBlockEnds                   // a claim that ends is free at once
	RecoveryLock                          // recovered rights are used at once
	FinalLedgers                          // who left is forgotten when rights are recovered
	OneMinter                             // whoever hears of a limit mints
	RateCools                             // rate rights may be used again at once
	RestartCools                          // rate rights are ready after a restart
	LoanKept                              // an unmarked loan comes back when it is no longer valid
	BornOnce                              // a ticket of a loan registers again and again
	ReceiveBeforeUse                      // a gift is used and acknowledged before it is written
	Fence                                 // a dead node is listened to, and given to
	PauseCheck                            // a counter that slept judges loans by the time of its last tick
	FreshMint                             // a successor mints by what it has heard, which may be older than its rights
	MintedWithGifts                       // a gift does not say what was minted, and who has more than it has heard of makes nothing of that
)
