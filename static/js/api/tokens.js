/** The key of a token that was just made can be copied. */
import { startCopying } from "../jobs/copying.js";

startCopying();
