/** The list of groups follows their runs. */
import { startLiveParts } from "../frame/live_parts.js";

startLiveParts();
