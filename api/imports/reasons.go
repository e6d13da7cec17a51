package imports

// The reasons in Report.Rejected. Each counts messages, unless it says
// otherwise.
const (
	reasonHidden      = "hidden"        // never shown to the person: set up by the tool
	reasonWeight      = "weight0"       // ChatGPT: not a part of what was sent
	reasonRecipient   = "recipient"     // ChatGPT: said to a tool
	reasonDoNot       = "doNotRemember" // conversations that the person excluded
	reasonSidechain   = "sidechain"     // of a subagent; or one of its files
	reasonTool        = "tool"          // calls of tools, and their results
	reasonThinking    = "thinking"      // thinking and nothing else
	reasonSynthetic   = "synthetic"     // text that the client wrote in the person's place
	reasonError       = "error"         // an error of the client that poses as an answer
	reasonSuperseded  = "superseded"    // an interim answer, before the last one
	reasonNotUser     = "notUser"       // neither the person's nor the assistant's
	reasonEmpty       = "empty"         // messages, conversations and memories without text
	reasonNotActive   = "notActive"     // memories that are paused, archived or deleted
	reasonDuplicate   = "duplicate"     // memories that the export has already brought
	reasonHeading     = "heading"       // headings among memories
	reasonUnknownType = "unknownType"   // content, messages and records of no known shape
)
